// The arithmetic of the contracts on a GPU: one IEEE operation each, whatever the compiler's flags.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/linear/activation.h"
#include "tensor/exact_poly.h"

namespace oasr::kernels::cuda {

// The operations of exact_poly.h on one float.
struct Exact {
  static __device__ float set(float a) { return a; }
  static __device__ float add(float a, float b) { return __fadd_rn(a, b); }
  static __device__ float sub(float a, float b) { return __fsub_rn(a, b); }
  static __device__ float mul(float a, float b) { return __fmul_rn(a, b); }
  static __device__ float div(float a, float b) { return __fdiv_rn(a, b); }
  static __device__ float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
  static __device__ float min(float a, float b) { return a < b ? a : b; }
  static __device__ float max(float a, float b) { return a > b ? a : b; }
  static __device__ float abs(float a) { return fabsf(a); }
  static __device__ float add_exponent(float p, float t) {
    return __uint_as_float(__float_as_uint(p) + (__float_as_uint(t) << 23));
  }
  static __device__ float zero_if_less(float v, float x, float limit) { return x < limit ? 0.0f : v; }
  static __device__ float unless_at_most(float v, float x, float limit, float other) {
    return x <= limit ? v : other;
  }
};

// exact_math's functions. Templates, since nvcc takes a constexpr function only from one.
template <class V>
__device__ V exp(V x) {
  return exact::exp<Exact>(x);
}
template <class V>
__device__ V sigmoid(V x) {
  return exact::sigmoid<Exact>(x);
}

// act(x), the bits of kernels::activate().
template <Activation kActivation>
__device__ float activate(float x) {
  if constexpr (kActivation == Activation::gelu) return exact::gelu<Exact>(x);
  if constexpr (kActivation == Activation::swish) return exact::swish<Exact>(x);
  if constexpr (kActivation == Activation::relu) return 0.0f > x ? 0.0f : x;
  if constexpr (kActivation == Activation::tanh) return exact::tanh<Exact>(x);
  return x;
}
__device__ inline float activate(Activation activation, float x) {
  switch (activation) {
    case Activation::none: return x;
    case Activation::gelu: return activate<Activation::gelu>(x);
    case Activation::swish: return activate<Activation::swish>(x);
    case Activation::relu: return activate<Activation::relu>(x);
    case Activation::tanh: return activate<Activation::tanh>(x);
  }
  return x;
}

// Several values, which keep the arithmetic busy while one alone would wait for itself.
template <Activation kActivation, int kCount>
__device__ void activate_each(float (&values)[kCount]) {
#pragma unroll
  for (float& value : values) value = activate<kActivation>(value);
}
template <int kCount>
__device__ void activate_all(Activation activation, float (&values)[kCount]) {
  switch (activation) {
    case Activation::none: return;
    case Activation::gelu: return activate_each<Activation::gelu>(values);
    case Activation::swish: return activate_each<Activation::swish>(values);
    case Activation::relu: return activate_each<Activation::relu>(values);
    case Activation::tanh: return activate_each<Activation::tanh>(values);
  }
}

__device__ inline bool is_finite(float x) { return (__float_as_uint(x) & 0x7f80'0000u) != 0x7f80'0000u; }

// clamp(rint(value), -127, 127), ties to even; value is finite.
__device__ inline std::int8_t to_int8(float value) {
  const float rounded = rintf(value);
  return static_cast<std::int8_t>(rounded < -127.0f ? -127.0f : (rounded > 127.0f ? 127.0f : rounded));
}

}  // namespace oasr::kernels::cuda
