// What layers share whose input is quantized to int8, whatever their weight: the input's forms, the links and
// the epilogue.
#pragma once

#include <optional>

#include "kernels/scaled_mm/implementation.h"
#include "quant/methods/linear_method.h"

namespace oasr::quant {

// Implementation: the row of a backend for products with Weight.
template <class Weight, class Implementation>
class ScaledLinear : public LinearMethod {
 public:
  void place(Gpu& gpu) override;
  std::int64_t in_features() const override { return weight_.k(); }
  std::int64_t out_features() const override { return weight_.n(); }
  void reserve(ExecContext& context) const override;
  kernels::NotFinite forward(ExecContext& context, const Activation& x, const Residual& residual,
                             Matrix y) const override;
  InputForm input_form() const override;
  const StaticInput* static_input() const override { return static_input_ ? &*static_input_ : nullptr; }
  bool emits_int8() const override { return true; }
  kernels::NotFinite forward_into(ExecContext& context, const Activation& x, const StaticInput& consumer,
                                  Activation& y) const override;

 protected:
  // smooth_inv [K] and bias [N], or empty; without an input scale the input has one a row.
  ScaledLinear(Weight weight, std::vector<float> smooth_inv, std::optional<float> input_scale,
               std::vector<float> bias, kernels::Activation activation, const Implementation& implementation);
  // The kernel, and the bytes of the vectors beside the weight.
  MethodInfo kernel_info(Isa isa) const;

  const Weight& weight() const { return weight_; }
  const std::vector<float>& bias() const { return bias_.values(); }
  const std::vector<float>& smooth_inv() const { return smooth_inv_.values(); }

 private:
  template <class Output>
  kernels::NotFinite multiply(ExecContext& context, const Activation& x, const Output& out) const;

  Weight weight_;
  Floats bias_, smooth_inv_;
  std::optional<StaticInput> static_input_;
  kernels::Activation activation_;
  const Implementation* implementation_;
  std::string kernel_on_gpu_;  // once it is placed
};

}  // namespace oasr::quant
