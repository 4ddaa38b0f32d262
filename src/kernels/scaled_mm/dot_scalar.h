// The dot product in plain C++.
#pragma once

#include <cstdint>

#include "kernels/quantize/vectors_scalar.h"
#include "kernels/scaled_mm/packed_int8_weight.h"

namespace oasr::kernels::scalar {

struct PlainDot {
  struct Simd : Int8Simd {};
  using Element = std::int16_t;
  using Weight = std::int8_t;
  static constexpr int kMaxRows = 1;
  static constexpr int kMaxPanels = 1;
  template <int kRows>
  static constexpr int kChains = 1;

  static void prepare(const std::int8_t* from, std::int64_t k, std::int16_t* to) {
    std::int64_t i = 0;
    for (; i < k; ++i) to[i] = from[i];
    for (; i % PackedInt8Weight::kQuad != 0; ++i) to[i] = 0;
  }

  template <int kRows, int kPanels, int kChains>
  static void tile(const std::int16_t* a, std::int64_t lda, const std::int8_t* b, std::int64_t,
                   std::int64_t quads, const std::int32_t*, std::int32_t* sums, std::int64_t stride) {
    constexpr int kPanel = static_cast<int>(PackedInt8Weight::kPanel);
    for (int r = 0; r < kRows; ++r) {
      std::int32_t at[kPanel] = {};
      for (std::int64_t q = 0; q < quads; ++q) {
        const std::int16_t* quad = a + r * lda + 4 * q;
        const std::int8_t* weights = b + 64 * q;
        for (int n = 0; n < kPanel; ++n) {
          at[n] += quad[0] * weights[4 * n] + quad[1] * weights[4 * n + 1] +
                   quad[2] * weights[4 * n + 2] + quad[3] * weights[4 * n + 3];
        }
      }
      for (int n = 0; n < kPanel; ++n) sums[r * stride + n] = at[n];
    }
  }
};

}  // namespace oasr::kernels::scalar
