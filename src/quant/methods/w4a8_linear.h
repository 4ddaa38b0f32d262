// W4A8: 4-bit weights that stand for int8 ones (formats/w4_weight.h), times int8 activations with a scale a
// row.
//
//   y = act(a_scale · (channel_scale · (q(x · smooth_inv) · w8ᵀ)) + bias) + residual
#pragma once

#include "formats/w4_encoder.h"
#include "quant/methods/int8_linear.h"
#include "quant/methods/quantized_tensors.h"
#include "quant/spec.h"

namespace oasr::quant {

class W4A8Linear final : public LinearMethod {
 public:
  // Zeros per channel are codes: w8 is u - z.
  W4A8Linear(const formats::W4Weight& weight, std::vector<float> smooth_inv, std::vector<float> bias,
             kernels::Activation activation, const kernels::ScaledMMImplementation& implementation);

  MethodInfo info(Isa isa) const override;
  std::int64_t in_features() const override { return product_.in_features(); }
  std::int64_t out_features() const override { return product_.out_features(); }
  void reserve(ExecContext& context) const override { product_.reserve(context); }
  kernels::NotFinite forward(ExecContext& context, const Activation& x, const Residual& residual,
                             Matrix y) const override {
    return product_.forward(context, x, residual, y);
  }
  InputForm input_form() const override { return product_.input_form(); }
  bool emits_int8() const override { return product_.emits_int8(); }
  kernels::NotFinite forward_into(ExecContext& context, const Activation& x, const StaticInput& consumer,
                                  Activation& y) const override {
    return product_.forward_into(context, x, consumer, y);
  }
  // Packed anew.
  std::vector<TensorSource> state(const std::string& path) const override;

 private:
  formats::W4Weight weight() const;

  formats::W4Weight levels_;  // without codes: those are in the product
  Int8Linear product_;        // over w8
};

// Codes of float rows, with the zero domain of the scheme. The range of a group is always searched; that of a
// channel only with importance, since a search that knows nothing costs Whisper more than it gains.
Result<formats::W4Weight> encode_w4(formats::W4Form form, std::int64_t n, std::int64_t k,
                                    const formats::RowSource& rows, std::span<const double> importance = {});

// The weight in slots, every rule checked. Errors: those of formats::unpack(); unsupported, zeros per channel
// that are no codes.
Result<formats::W4Weight> read_w4(formats::W4Form form, formats::ZeroDomain domain, const StoredSlots& slots);

// The slots of a weight. smooth_inv [K] or empty. Errors: those of formats::pack().
Result<QuantizedTensors> stored_w4(const formats::W4Weight& weight, std::span<const float> smooth_inv);

}  // namespace oasr::quant
