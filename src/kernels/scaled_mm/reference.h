// The definitions of op.h for any kind of weight: plain loops over the rows that it unpacks to.
#pragma once

#include <cmath>
#include <vector>

#include "kernels/scaled_mm/op.h"

namespace oasr::kernels {

// Calls write(m, n, value) with what epilogue.h says of the exact sums.
template <class Weight, class Write>
void for_each_value(const ScaledMMArgsOf<Weight>& args, Write write) {
  const std::int64_t k = args.weight->k();
  std::vector<std::int8_t> w(static_cast<std::size_t>(k));
  for (std::int64_t n = 0; n < args.weight->n(); ++n) {
    args.weight->unpack_row(n, w);
    for (std::int64_t m = 0; m < args.m; ++m) {
      std::int32_t acc = 0, row_sum = 0;
      for (std::int64_t i = 0; i < k; ++i) {
        acc += args.a[m * args.lda + i] * w[static_cast<std::size_t>(i)];
        row_sum += args.a[m * args.lda + i];
      }
      float value = args.weight->scale()[n] * static_cast<float>(acc);
      if constexpr (Weight::kFloatZeros) {
        const float* zero = args.weight->float_zero();
        if (zero != nullptr) value = std::fma(-static_cast<float>(row_sum), zero[n], value);
      }
      value = args.a_scale.of_row(m) * value;
      if (args.bias != nullptr) value = value + args.bias[n];
      write(m, n, activate(args.activation, value));
    }
  }
}

template <class Weight>
NotFinite reference(const ScaledMMArgsOf<Weight>& args, const FloatOutput& out) {
  for_each_value(args, [&](std::int64_t m, std::int64_t n, float value) {
    if (out.residual != nullptr) value = std::fma(out.alpha, value, out.residual[m * out.ldr + n]);
    out.y[m * out.ldy + n] = value;
  });
  return {};
}

template <class Weight>
NotFinite reference(const ScaledMMArgsOf<Weight>& args, const Int8Output& out) {
  const std::int64_t n = args.weight->n();
  std::vector<float> values(static_cast<std::size_t>(args.m * n));
  (void)reference(args, FloatOutput{.y = values.data(), .ldy = n}).row;
  return quantize_static_reference({.x = values.data(),
                                    .ldx = n,
                                    .m = args.m,
                                    .k = n,
                                    .multiplier = out.multiplier,
                                    .q = out.q,
                                    .ldq = out.ldq});
}

template <class Weight, class Output>
NotFinite reference(const DynamicScaledMMArgsOf<Weight>& args, const Output& out) {
  const std::int64_t k = args.weight->k();
  std::vector<std::int8_t> q(static_cast<std::size_t>(args.m * k));
  std::vector<float> scale(static_cast<std::size_t>(args.m));
  NotFinite found = quantize_per_token_reference({.x = args.x,
                                                  .ldx = args.ldx,
                                                  .m = args.m,
                                                  .k = k,
                                                  .smooth_inv = args.smooth_inv,
                                                  .q = q.data(),
                                                  .ldq = k,
                                                  .scale = scale.data()});
  const ScaledMMArgsOf<Weight> product{.a = q.data(),
                                       .lda = k,
                                       .a_scale = ActivationScale::per_token(scale.data()),
                                       .m = args.m,
                                       .weight = args.weight,
                                       .bias = args.bias,
                                       .activation = args.activation};
  found.merge(reference(product, out));
  return found;
}

template <class Weight, class Output>
NotFinite reference(const StaticScaledMMArgsOf<Weight>& args, const Output& out) {
  const std::int64_t k = args.weight->k();
  std::vector<std::int8_t> q(static_cast<std::size_t>(args.m * k));
  NotFinite found = quantize_static_reference({.x = args.x,
                                               .ldx = args.ldx,
                                               .m = args.m,
                                               .k = k,
                                               .multiplier = args.multiplier,
                                               .q = q.data(),
                                               .ldq = k});
  const ScaledMMArgsOf<Weight> product{.a = q.data(),
                                       .lda = k,
                                       .a_scale = ActivationScale::per_tensor(args.input_scale),
                                       .m = args.m,
                                       .weight = args.weight,
                                       .bias = args.bias,
                                       .activation = args.activation};
  found.merge(reference(product, out));
  return found;
}

}  // namespace oasr::kernels
