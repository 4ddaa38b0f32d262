#include "tensor/exact_math.h"

#include <bit>
#include <cmath>
#include <cstdint>

#include "tensor/exact_poly.h"

namespace oasr::exact {
namespace {

struct Plain {
  static float set(float a) { return a; }
  static float add(float a, float b) { return a + b; }
  static float sub(float a, float b) { return a - b; }
  static float mul(float a, float b) { return a * b; }
  static float div(float a, float b) { return a / b; }
  static float fma(float a, float b, float c) { return std::fma(a, b, c); }
  static float min(float a, float b) { return a < b ? a : b; }
  static float max(float a, float b) { return a > b ? a : b; }
  static float abs(float a) { return std::fabs(a); }
  static float add_exponent(float p, float t) {
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) + (std::bit_cast<std::uint32_t>(t) << 23));
  }
  static float zero_if_less(float v, float x, float limit) { return x < limit ? 0.0f : v; }
  static float unless_at_most(float v, float x, float limit, float other) {
    return x <= limit ? v : other;
  }
};

}  // namespace

float exp(float x) { return exp<Plain>(x); }

float gelu(float x) { return gelu<Plain>(x); }

float swish(float x) { return swish<Plain>(x); }

float sigmoid(float x) { return sigmoid<Plain>(x); }

float tanh(float x) { return tanh<Plain>(x); }

}  // namespace oasr::exact
