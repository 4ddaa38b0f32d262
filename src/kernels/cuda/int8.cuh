// Floats on their way to int8: the greatest magnitude of a row, and four values in one word.
#pragma once

#include "kernels/cuda/exact.cuh"

namespace oasr::kernels::cuda {

// The greater magnitude; NaN once a value is NaN.
__device__ inline float greater_magnitude(float amax, float value) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(amax), "f"(fabsf(value)));
  return result;
}

// The greatest over a warp of magnitudes, as bits: those of NaN are above those of infinity, which are above
// those of every number.
__device__ inline unsigned warp_greatest(float amax) {
  return __reduce_max_sync(0xffff'ffffu, __float_as_uint(amax));
}

// clamp(value, -127, 127): what rint() makes of it is clamp(rint(value), -127, 127).
__device__ inline float clamp_to_int8(float value) { return fminf(fmaxf(value, -127.0f), 127.0f); }

// Four values of at most 127.5 in magnitude, rounded to nearest even: the low bytes of sums with 1.5 · 2²³.
__device__ inline unsigned round_four(float a, float b, float c, float d) {
  constexpr float kRound = 12'582'912.0f;
  const unsigned low =
      __byte_perm(__float_as_uint(__fadd_rn(a, kRound)), __float_as_uint(__fadd_rn(b, kRound)), 0x0040);
  const unsigned high =
      __byte_perm(__float_as_uint(__fadd_rn(c, kRound)), __float_as_uint(__fadd_rn(d, kRound)), 0x0040);
  return __byte_perm(low, high, 0x5410);
}

// Keeps the lowest row that is not finite.
__device__ inline void report_row(std::int32_t* not_finite_row, std::int64_t row) {
  atomicMin(not_finite_row, static_cast<std::int32_t>(row));
}

}  // namespace oasr::kernels::cuda
