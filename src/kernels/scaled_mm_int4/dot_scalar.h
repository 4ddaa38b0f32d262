// The dot product of 4-bit codes in plain C++.
#pragma once

#include "kernels/quantize/vectors_scalar.h"
#include "kernels/scaled_mm_int4/product.h"

namespace oasr::kernels::scalar {

struct Int4Dot {
  struct Simd : Int8Simd {};
  static constexpr int kMaxRows = 1, kMaxPanels = 1, kStreamRows = 1;
  template <int kRows>
  static constexpr int kChains = 1;

  static std::int32_t sum(const std::int8_t* a, std::int64_t count) {
    std::int32_t total = 0;
    for (std::int64_t i = 0; i < count; ++i) total += a[i];
    return total;
  }

  // Sums are unsigned: they may wrap on the way.
  template <int kRows, int kPanels, int kChains>
  static void tile(const Int4Operands& x, std::int32_t* sums, std::int64_t) {
    static_assert(kRows == 1 && kPanels == 1);
    constexpr int kPanel = static_cast<int>(PackedInt4Weight::kPanel);
    std::uint32_t total[kPanel] = {};
    const std::uint8_t* b = x.b;
    const std::int8_t* a = x.a;
    for (std::int64_t g = 0; g < x.groups; ++g) {
      std::int32_t at[kPanel] = {};
      for (std::int64_t line = 0; line < x.lines; ++line, a += 8, b += 64) {
        for (int n = 0; n < kPanel; ++n) {
          for (int i = 0; i < 4; ++i) at[n] += a[i] * (b[4 * n + i] & 15) + a[4 + i] * (b[4 * n + i] >> 4);
        }
      }
      const auto* level = reinterpret_cast<const PackedInt4Weight::Level*>(b);
      for (int n = 0; n < kPanel; ++n) {
        total[n] += static_cast<std::uint32_t>(at[n]) * static_cast<std::uint32_t>(level[n].scale) +
                    static_cast<std::uint32_t>(x.a_sums[g]) * static_cast<std::uint32_t>(level[n].minus_zero);
      }
      b += 64;
    }
    std::memcpy(sums, total, sizeof total);
  }
};

}  // namespace oasr::kernels::scalar
