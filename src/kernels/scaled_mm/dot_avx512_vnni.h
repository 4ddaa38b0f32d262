// The dot product of AVX-512 VNNI: u8 · s8 in groups of four, added to int32 without saturation.
//
// Activations are taken as u8, q + 128; the weight's offset, -128 · Σ w, starts the sums, so they
// end exact (wrapping on the way is harmless modulo 2³²).
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/quantize/vectors_avx512.h"
#include "kernels/scaled_mm/packed_int8_weight.h"

namespace oasr::kernels::avx512 {

struct VnniDot {
  struct Simd : Int8Simd {};
  using Element = std::uint8_t;
  using Weight = std::int8_t;
  // Bytes to read ahead of few rows: the hardware stops at every page.
  static constexpr std::int64_t kAhead = 2048;
  // 24 accumulators, four vectors of weights, one of activations.
  static constexpr int kMaxRows = 6;
  static constexpr int kMaxPanels = 4;
  template <int kRows>
  static constexpr int kChains = kRows == 1 ? 8 : 4;

  static void prepare(const std::int8_t* from, std::int64_t k, std::uint8_t* to) {
    const __m512i flip = _mm512_set1_epi8(-128);
    std::int64_t i = 0;
    for (; i + 64 <= k; i += 64) {
      _mm512_storeu_si512(to + i, _mm512_xor_si512(_mm512_loadu_si512(from + i), flip));
    }
    if (i < k) {
      const __mmask64 first = (std::uint64_t{1} << (k - i)) - 1;
      _mm512_storeu_si512(to + i, _mm512_xor_si512(_mm512_maskz_loadu_epi8(first, from + i), flip));
    }
  }

  template <int kRows, int kPanels, int kChains>
  static void tile(const std::uint8_t* a, std::int64_t lda, const std::int8_t* b, std::int64_t panel_stride,
                   std::int64_t quads, const std::int32_t* offset, std::int32_t* sums, std::int64_t stride) {
    static_assert(kPanels == 1 || kChains == 1);
    constexpr int kAcross = kPanels * kChains;
    __m512i at[kRows][kAcross];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < kAcross; ++v) {
        at[r][v] = v < kPanels ? _mm512_load_si512(offset + v * 16) : _mm512_setzero_si512();
      }
    }
    std::int64_t q = 0;
    if constexpr (kChains > 1) {
      for (; q + kChains <= quads; q += kChains) {
#pragma GCC unroll 8
        for (int i = 0; i < kChains; ++i) __builtin_prefetch(b + 64 * (q + i) + kAhead);
        step<kChains, true>(a + 4 * q, lda, b + 64 * q, 64, at);
      }
    }
    for (; q < quads; ++q) step<kPanels, false>(a + 4 * q, lda, b + 64 * q, panel_stride, at);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int c = 1; c < kChains; ++c) at[r][0] = _mm512_add_epi32(at[r][0], at[r][c]);
#pragma GCC unroll 8
      for (int v = 0; v < kPanels; ++v) _mm512_store_si512(sums + r * stride + v * 16, at[r][v]);
    }
  }

 private:
  // at(r, v) += a(r, ·) · b(v, ·) for kCount vectors b_step bytes apart: panels, which share the
  // quad of a, or consecutive quads of one panel.
  template <int kCount, bool kConsecutive, int kRows, int kAcross>
  [[gnu::always_inline]] static void step(const std::uint8_t* a, std::int64_t lda, const std::int8_t* b,
                                          std::int64_t b_step, __m512i (&at)[kRows][kAcross]) {
    __m512i weights[kCount];
#pragma GCC unroll 8
    for (int v = 0; v < kCount; ++v) weights[v] = _mm512_load_si512(b + v * b_step);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      __m512i quad = broadcast(a + r * lda);
#pragma GCC unroll 8
      for (int v = 0; v < kCount; ++v) {
        if (kConsecutive && v > 0) quad = broadcast(a + r * lda + 4 * v);
        at[r][v] = _mm512_dpbusd_epi32(at[r][v], quad, weights[v]);
      }
    }
  }
  [[gnu::always_inline]] static __m512i broadcast(const std::uint8_t* quad) {
    std::int32_t four = 0;
    std::memcpy(&four, quad, sizeof four);
    return _mm512_set1_epi32(four);
  }
};

}  // namespace oasr::kernels::avx512
