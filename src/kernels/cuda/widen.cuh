// Stored numbers on a GPU: float16 and bfloat16 are widened exactly.
#pragma once

#include <cuda_fp16.h>

#include <cstddef>

#include "base/check.h"
#include "tensor/dtype.h"

namespace oasr::kernels::cuda {

__device__ inline float widen(float value) { return value; }
__device__ inline float widen(Half value) { return __half2float(__ushort_as_half(value.bits)); }
__device__ inline float widen(BFloat16 value) {
  return __uint_as_float(static_cast<unsigned>(value.bits) << 16);
}

// One rounding to nearest even.
template <class T>
__device__ T narrow(float value) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return value;
  } else {
    return {__half_as_ushort(__float2half_rn(value))};
  }
}

// Calls f with `data` as a pointer to numbers of the storage's type.
template <class F>
void with_storage(DType storage, const std::byte* data, F f) {
  if (storage == DType::f32) return f(reinterpret_cast<const float*>(data));
  if (storage == DType::f16) return f(reinterpret_cast<const Half*>(data));
  if (storage == DType::bf16) return f(reinterpret_cast<const BFloat16*>(data));
  CHECK(false, "numbers are stored as float32, float16 or bfloat16");
}

}  // namespace oasr::kernels::cuda
