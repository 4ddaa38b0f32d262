// W4A8: 4-bit weights that stand for int8 ones (formats/w4_weight.h), times int8 activations with a scale a
// row.
//
//   y = act(a_scale · (channel_scale · (q(x · smooth_inv) · w8ᵀ)) + bias) + residual
#pragma once

#include "formats/w4_encoder.h"
#include "kernels/scaled_mm_int4/op.h"
#include "quant/methods/quantized_tensors.h"
#include "quant/methods/scaled_linear.h"
#include "quant/spec.h"

namespace oasr::quant {

class W4A8Linear final : public ScaledLinear<kernels::PackedInt4Weight, kernels::Int4MMImplementation> {
 public:
  W4A8Linear(const formats::W4Weight& weight, std::vector<float> smooth_inv, std::vector<float> bias,
             kernels::Activation activation, const kernels::Int4MMImplementation& implementation);
  MethodInfo info(Isa isa) const override;
  // Packed anew.
  std::vector<TensorSource> state(const std::string& path) const override;

 private:
  formats::W4Weight unpacked() const;

  formats::W4Weight levels_;  // without codes: those are in the product's weight
};

// Codes of float rows, with the zero domain of the scheme. The range of a group is always searched; that of a
// channel only with importance, since a search that knows nothing costs Whisper more than it gains. Rows are shared out
// over the pool; null: the caller's thread. The bits do not depend on it.
Result<formats::W4Weight> encode_w4(formats::W4Form form, std::int64_t n, std::int64_t k,
                                    const formats::RowSource& rows, std::span<const double> importance = {},
                                    ThreadPool* pool = nullptr);

// The weight in slots, every rule checked. Errors: those of formats::unpack().
Result<formats::W4Weight> read_w4(formats::W4Form form, formats::ZeroDomain domain, const StoredSlots& slots);

// The slots of a weight. smooth_inv [K] or empty. Errors: those of formats::pack().
Result<QuantizedTensors> stored_w4(const formats::W4Weight& weight, std::span<const float> smooth_inv);

}  // namespace oasr::quant
