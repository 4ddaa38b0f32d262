// The vectors of simd/scalar.h with conversions to and from int8 and int32.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/simd/scalar.h"

namespace oasr::kernels::scalar {

struct Int8Simd : Simd {
  static V convert(const std::int32_t* p) {
    V v;
    for (int i = 0; i < kWidth; ++i) v.at[i] = static_cast<float>(p[i]);
    return v;
  }
  // The first n elements, rounded to nearest even. All are in [-127, 127] or NaN (any value then).
  static void round_first(std::int8_t* p, V v, int n) {
    for (int i = 0; i < n; ++i) {
      const float bounded = v.at[i] > -128.0f ? v.at[i] : -128.0f;
      p[i] = static_cast<std::int8_t>(std::rint(bounded));
    }
  }
  // The greater of `most` and |v| as bit patterns: NaN above infinity above all numbers.
  static V greater_magnitude(V most, V v) {
    for (int i = 0; i < kWidth; ++i) {
      if (magnitude(most.at[i]) < magnitude(v.at[i])) most.at[i] = v.at[i];
    }
    return most;
  }
  static std::int32_t greatest_magnitude(V v) {
    std::int32_t most = 0;
    for (int i = 0; i < kWidth; ++i) most = most > magnitude(v.at[i]) ? most : magnitude(v.at[i]);
    return most;
  }

 private:
  static std::int32_t magnitude(float value) {
    std::int32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    return bits & 0x7FFFFFFF;
  }
};

}  // namespace oasr::kernels::scalar
