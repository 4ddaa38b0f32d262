// The dot product of AVX-512 VNNI, u8 · s8: the codes are the unsigned side, so activations stay as they are.
#pragma once

#include "kernels/quantize/vectors_avx512.h"
#include "kernels/scaled_mm_int4/product.h"

namespace oasr::kernels::avx512 {

struct Int4Dot {
  struct Simd : Int8Simd {};
  // Bytes to read ahead of few rows: the hardware stops at every page.
  static constexpr std::int64_t kAhead = 2048;
  // 24 accumulators, four vectors of codes, one of activations, the mask.
  static constexpr int kMaxRows = 6, kMaxPanels = 4, kStreamRows = 4;
  template <int kRows>
  static constexpr int kChains = 4;

  static std::int32_t sum(const std::int8_t* a, std::int64_t count) {
    __m512i total = _mm512_setzero_si512();
    for (std::int64_t i = 0; i < count; i += 64) {
      total = _mm512_dpbusd_epi32(total, _mm512_set1_epi8(1), _mm512_loadu_si512(a + i));
    }
    return _mm512_reduce_add_epi32(total);
  }

  template <int kRows, int kPanels, int kChains>
  static void tile(const Int4Operands& x, std::int32_t* sums, std::int64_t stride) {
    static_assert(kPanels == 1 || kChains == 1);
    constexpr int kLines = (kChains + 1) / 2;  // with chains for both halves of them
    const std::int8_t* a = x.a;
    const std::uint8_t* b = x.b;
    for (std::int64_t g = 0; g < x.groups; ++g) {
      __m512i at[kRows][kPanels * kChains];
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
        for (int v = 0; v < kPanels * kChains; ++v) at[r][v] = _mm512_setzero_si512();
      }
      for (std::int64_t line = 0; line < x.lines; line += kLines) {
#pragma GCC unroll 4
        for (int i = 0; i < kLines; ++i) {
          if constexpr (kPanels == 1) __builtin_prefetch(b + kAhead);
          step<kPanels, kChains>(a, x.lda, b, x.panel_stride, 2 * i, at);
          a += 8;
          b += 64;
        }
      }
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
        for (int c = 1; c < kChains; ++c) at[r][0] = _mm512_add_epi32(at[r][0], at[r][c]);
      }
      add_group<kRows, kPanels>(x, g, b, at, sums, stride);
      b += 64;
    }
  }

 private:
  // Four k of sixteen channels: the low or the high halves of a line.
  [[gnu::always_inline]] static __m512i codes(const std::uint8_t* line, int half) {
    const __m512i both = _mm512_load_si512(line);
    return _mm512_and_si512(half == 0 ? both : _mm512_srli_epi16(both, 4), _mm512_set1_epi8(15));
  }

  // at(r, ·) += a(r, ·) · codes of eight k.
  template <int kPanels, int kChains, int kRows, int kAcross>
  [[gnu::always_inline]] static void step(const std::int8_t* a, std::int64_t lda, const std::uint8_t* b,
                                          std::int64_t panel_stride, int chain,
                                          __m512i (&at)[kRows][kAcross]) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      __m512i weights[kPanels];
#pragma GCC unroll 8
      for (int v = 0; v < kPanels; ++v) weights[v] = codes(b + v * panel_stride, half);
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) {
        std::int32_t four = 0;
        std::memcpy(&four, a + r * lda + 4 * half, sizeof four);
        const __m512i quad = _mm512_set1_epi32(four);
#pragma GCC unroll 8
        for (int v = 0; v < kPanels; ++v) {
          __m512i& sum = at[r][kChains > 1 ? (chain + half) % kChains : v];
          sum = _mm512_dpbusd_epi32(sum, weights[v], quad);
        }
      }
    }
  }

  // sums(r, ·) += s · at(r, ·) - z · Σ a(r) of group g.
  template <int kRows, int kPanels, int kAcross>
  [[gnu::always_inline]] static void add_group(const Int4Operands& x, std::int64_t g,
                                               const std::uint8_t* levels,
                                               const __m512i (&at)[kRows][kAcross], std::int32_t* sums,
                                               std::int64_t stride) {
#pragma GCC unroll 8
    for (int v = 0; v < kPanels; ++v) {
      const __m512i level = _mm512_load_si512(levels + v * x.panel_stride);
      const __m512i scale = _mm512_and_si512(level, _mm512_set1_epi32(0xFFFF));
      const __m512i minus_zero = _mm512_srai_epi32(level, 16);
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) {
        std::int32_t* to = sums + r * stride + v * 16;
        const __m512i shift = _mm512_mullo_epi32(minus_zero, _mm512_set1_epi32(x.a_sums[r * x.groups + g]));
        __m512i sum = _mm512_add_epi32(_mm512_mullo_epi32(scale, at[r][v]), shift);
        if (g > 0) sum = _mm512_add_epi32(sum, _mm512_load_si512(to));
        _mm512_store_si512(to, sum);
      }
    }
  }
};

}  // namespace oasr::kernels::avx512
