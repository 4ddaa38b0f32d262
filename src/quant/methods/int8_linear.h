// W8A8: int8 weights with a scale an output channel, int8 activations with a scale a row or a
// calibrated one, exact int32 sums.
//
//   x'  = x · smooth_inv (runtime-smoothed layers only)
//   y   = act(a_scale · (weight_scale · (q(x') · weightᵀ)) + bias) + residual
#pragma once

#include <optional>

#include "quant/methods/scaled_linear.h"

namespace oasr::quant {

// The numbers as a checkpoint stores them.
struct Int8Storage {
  std::vector<std::int8_t> weight;    // [N, K]
  std::vector<float> weight_scale;    // [N], finite, not negative
  std::vector<float> smooth_inv;      // [K] or empty
  std::optional<float> input_scale;   // static activations only: finite and positive
};

class Int8Linear final : public ScaledLinear<kernels::PackedInt8Weight, kernels::ScaledMMImplementation> {
 public:
  Int8Linear(std::int64_t n, std::int64_t k, const Int8Storage& storage, std::vector<float> bias,
             kernels::Activation activation, const kernels::ScaledMMImplementation& implementation);
  MethodInfo info(Isa isa) const override;
  std::vector<TensorSource> state(const std::string& path) const override;
};

// Round to nearest: every row of the source by the per-token rule (kernels/quantize/op.h), on the
// host in float32. An error for a weight that is not finite.
Result<Int8Storage> quantize_weight(Isa isa, const LinearSource& source);

}  // namespace oasr::quant
