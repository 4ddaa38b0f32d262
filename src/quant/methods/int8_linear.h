// W8A8: int8 weights with a scale an output channel, int8 activations with a scale a row or a
// calibrated one, exact int32 sums.
//
//   x'  = x · smooth_inv (runtime-smoothed layers only)
//   y   = act(a_scale · (weight_scale · (q(x') · weightᵀ)) + bias) + residual
#pragma once

#include <optional>

#include "kernels/scaled_mm/implementation.h"
#include "quant/methods/linear_method.h"

namespace oasr::quant {

// The numbers as a checkpoint stores them.
struct Int8Storage {
  std::vector<std::int8_t> weight;    // [N, K]
  std::vector<float> weight_scale;    // [N], finite, not negative
  std::vector<float> smooth_inv;      // [K] or empty
  std::optional<float> input_scale;   // static activations only: finite and positive
};

class Int8Linear final : public LinearMethod {
 public:
  Int8Linear(std::int64_t n, std::int64_t k, const Int8Storage& storage, std::vector<float> bias,
             kernels::Activation activation, const kernels::ScaledMMImplementation& implementation);

  MethodInfo info(Isa isa) const override;
  std::int64_t in_features() const override { return weight_.k(); }
  std::int64_t out_features() const override { return weight_.n(); }
  void reserve(ExecContext& context) const override;
  kernels::NotFinite forward(ExecContext& context, const Activation& x, const Residual& residual,
                             Matrix y) const override;
  InputForm input_form() const override;
  const StaticInput* static_input() const override { return static_input_ ? &*static_input_ : nullptr; }
  bool emits_int8() const override { return true; }
  kernels::NotFinite forward_into(ExecContext& context, const Activation& x,
                                  const StaticInput& consumer, Activation& y) const override;
  std::vector<TensorSource> state(const std::string& path) const override;

  const kernels::PackedInt8Weight& weight() const { return weight_; }
  const std::vector<float>& bias() const { return bias_; }
  const std::vector<float>& smooth_inv() const { return smooth_inv_; }

 private:
  template <class Output>
  kernels::NotFinite multiply(ExecContext& context, const Activation& x, const Output& out) const;

  kernels::PackedInt8Weight weight_;
  std::vector<float> bias_, smooth_inv_;
  std::optional<StaticInput> static_input_;
  kernels::Activation activation_;
  const kernels::ScaledMMImplementation* implementation_;
};

// Round to nearest: every row of the source by the per-token rule (kernels/quantize/op.h), on the
// host in float32. An error for a weight that is not finite.
Result<Int8Storage> quantize_weight(Isa isa, const LinearSource& source);

}  // namespace oasr::quant
