// Plain C++ in the shape of a vector, for the lane templates: four floats in an array.
#pragma once

#include <cstdint>
#include <cstring>

#include "tensor/dtype.h"

namespace oasr::kernels::scalar {

// fma(a, b, c) for a processor without the instruction, where std::fma is a slow library call: the
// product is exact in double; the sum is rounded to odd there (rounded to nearest, then moved to
// the odd neighbour on the side of the error), so that the last rounding, to float, is the only one
// (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums", 2008).
inline float fma(float a, float b, float c) {
  const double product = static_cast<double>(a) * static_cast<double>(b);
  const double addend = c;
  const double sum = product + addend;
  const double part = sum - product;
  const double error = (product - (sum - part)) + (addend - part);
  std::int64_t bits = 0, error_bits = 0;
  std::memcpy(&bits, &sum, sizeof bits);
  std::memcpy(&error_bits, &error, sizeof error_bits);
  const std::int64_t inexact = (error > 0.0) | (error < 0.0);  // not for NaN: infinite sums stay
  const std::int64_t towards = 1 + 2 * ((bits ^ error_bits) >> 63);  // +1 away from zero, or -1
  bits += towards & -(inexact & ~bits & 1);
  double odd = 0;
  std::memcpy(&odd, &bits, sizeof odd);
  return static_cast<float>(odd);
}

struct Simd {
  static constexpr int kWidth = 4;
  static constexpr int kMaxRows = 4;
  static constexpr int kRegisters = 8;
  struct V {
    float at[kWidth];
  };

  static V set(float a) { return each([&](int) { return a; }); }
  static V load(const float* p) { return each([&](int i) { return p[i]; }); }
  static V load(const Half* p) { return each([&](int i) { return to_float(p[i]); }); }
  static V load(const BFloat16* p) { return each([&](int i) { return to_float(p[i]); }); }
  static void store(float* p, V v) { store_first(p, v, kWidth); }
  static void store_eight(Half* p, const float* from) {
    for (int i = 0; i < 8; ++i) p[i] = to_half(from[i]);
  }
  static void store_one(float* p, float a) { *p = a; }
  static void store_one(Half* p, float a) { *p = to_half(a); }
  // The first n elements, 0 <= n <= kWidth; the others read as zero.
  static V load_first(const float* p, int n) {
    return each([&](int i) { return i < n ? p[i] : 0.0f; });
  }
  static void store_first(float* p, V v, int n) {
    for (int i = 0; i < n; ++i) p[i] = v.at[i];
  }
  static V keep_first(V v, int n) { return fill_after_first(v, n, 0.0f); }
  static V fill_after_first(V v, int n, float other) {
    return each([&](int i) { return i < n ? v.at[i] : other; });
  }

  static V add(V a, V b) { return each([&](int i) { return a.at[i] + b.at[i]; }); }
  static V sub(V a, V b) { return each([&](int i) { return a.at[i] - b.at[i]; }); }
  static V mul(V a, V b) { return each([&](int i) { return a.at[i] * b.at[i]; }); }
  static V div(V a, V b) { return each([&](int i) { return a.at[i] / b.at[i]; }); }
  static V fma(V a, V b, V c) {
    return each([&](int i) { return scalar::fma(a.at[i], b.at[i], c.at[i]); });
  }
  static V min(V a, V b) { return each([&](int i) { return a.at[i] < b.at[i] ? a.at[i] : b.at[i]; }); }
  static V max(V a, V b) { return each([&](int i) { return a.at[i] > b.at[i] ? a.at[i] : b.at[i]; }); }
  static V abs(V a) { return each([&](int i) { return __builtin_fabsf(a.at[i]); }); }
  static V add_exponent(V p, V t) {
    return each([&](int i) {
      std::uint32_t bits = 0, exponent = 0;
      std::memcpy(&bits, &p.at[i], sizeof bits);
      std::memcpy(&exponent, &t.at[i], sizeof exponent);
      bits += exponent << 23;
      float sum = 0;
      std::memcpy(&sum, &bits, sizeof sum);
      return sum;
    });
  }
  static V zero_if_less(V v, V x, V limit) {
    return each([&](int i) { return x.at[i] < limit.at[i] ? 0.0f : v.at[i]; });
  }
  static V unless_at_most(V v, V x, V limit, V other) {
    return each([&](int i) { return x.at[i] <= limit.at[i] ? v.at[i] : other.at[i]; });
  }

  // The canonical tree over sixteen partial sums.
  static float fold_sum(const V (&s)[4]) {
    const V four = add(add(s[0], s[2]), add(s[1], s[3]));
    return (four.at[0] + four.at[2]) + (four.at[1] + four.at[3]);
  }
  static float greatest(V v) {
    float most = v.at[0];
    for (int i = 1; i < kWidth; ++i) most = most > v.at[i] ? most : v.at[i];
    return most;
  }

 private:
  template <class F>
  static V each(F f) {
    return {{f(0), f(1), f(2), f(3)}};
  }
};

}  // namespace oasr::kernels::scalar
