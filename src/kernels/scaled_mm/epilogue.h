// What becomes of the int32 sums of an int8 product: shared by scaled_mm and scaled_conv.
//
// Contract, float32, in this order, without contraction:
//   value(m, n) = act(a_scale[m] · (w_scale[n] · float(acc)) + bias[n])
//   y(m, n)     = value, or fma(alpha, value, residual(m, n)) with a residual     (Output float)
//   q(m, n)     = clamp(rint(value · multiplier[n]), -127, 127), ties to even     (Output int8)
// float(acc) rounds to nearest even. A value that is not finite is reported by the int8 form and
// becomes q = 0, as in quantize_static(); the float form hands it on.
#pragma once

#include <cstdint>

#include "kernels/linear/op.h"
#include "kernels/quantize/op.h"

namespace oasr::kernels {

// The served type is float32 here, so "rounded once to the output type" leaves the value as it is;
// an output type is one more form of this struct.
struct FloatOutput {
  const float* residual = nullptr;  // [M, N], row stride ldr, or null; may be y itself
  std::int64_t ldr = 0;
  float alpha = 1.0f;               // with a residual only
  float* y = nullptr;               // [M, N], row stride ldy
  std::int64_t ldy = 0;
};
struct Int8Output {
  const float* multiplier = nullptr;  // [N], of static_multiplier() of the consumer
  std::int8_t* q = nullptr;           // [M, N], row stride ldq
  std::int64_t ldq = 0;
};

}  // namespace oasr::kernels
