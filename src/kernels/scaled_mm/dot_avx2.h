// The dot product of AVX2: both sides widened to s16, vpmaddwd, exact for all int8 values.
//
// vpmaddubsw does twice the products, but saturates unless the signs are split first (vpsignb, for
// each row and vector), and its s16 sums need a vpmaddwd of their own: four instructions for 32
// products either way, and the same rate when measured in registers.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/quantize/vectors_avx2.h"
#include "kernels/scaled_mm/packed_int8_weight.h"

namespace oasr::kernels::avx2 {

struct WideDot {
  struct Simd : Int8Simd {};
  using Element = std::int16_t;
  using Weight = std::int16_t;
  // Bytes to read ahead of few rows: the hardware stops at every page.
  static constexpr std::int64_t kAhead = 2048;
  static constexpr int kMaxRows = 6;
  static constexpr int kMaxPanels = 1;
  template <int kRows>
  static constexpr int kChains = 1;

  static void prepare(const std::int8_t* from, std::int64_t k, std::int16_t* to) {
    std::int64_t i = 0;
    for (; i + 16 <= k; i += 16) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), _mm256_cvtepi8_epi16(bytes));
    }
    for (; i < k; ++i) to[i] = from[i];
    for (; i % PackedInt8Weight::kQuad != 0; ++i) to[i] = 0;
  }

  static void widen(const std::int8_t* panel, std::int64_t quads, std::int16_t* to) {
    for (std::int64_t i = 0; i < 64 * quads; i += 16) {
      _mm256_store_si256(reinterpret_cast<__m256i*>(to + i), load(panel + i));
    }
  }

  template <int kRows, int kPanels, int kChains, class T>
  static void tile(const std::int16_t* a, std::int64_t lda, const T* b, std::int64_t, std::int64_t quads,
                   const std::int32_t*, std::int32_t* sums, std::int64_t stride) {
    static_assert(kPanels == 1 && kChains == 1);
    if constexpr (kRows <= 3) {
      part<kRows, 4>(a, lda, b, quads, sums, stride);
    } else {
      part<kRows, 2>(a, lda, b, quads, sums, stride);
      part<kRows, 2>(a, lda, b + 32, quads, sums + 8, stride);
    }
  }

 private:
  [[gnu::always_inline]] static __m256i load(const std::int8_t* p) {
    return _mm256_cvtepi8_epi16(_mm_load_si128(reinterpret_cast<const __m128i*>(p)));
  }
  [[gnu::always_inline]] static __m256i load(const std::int16_t* p) {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(p));
  }

  // 4 · kVectors channels of a panel. A vector holds four quads of weights, so a sum is in two
  // parts, for the first and the last two k of a quad.
  template <int kRows, int kVectors, class T>
  [[gnu::always_inline]] static void part(const std::int16_t* a, std::int64_t lda, const T* b,
                                          std::int64_t quads, std::int32_t* sums, std::int64_t stride) {
    __m256i at[kRows][kVectors];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) at[r][v] = _mm256_setzero_si256();
    }
    for (std::int64_t q = 0; q < quads; ++q) {
      if constexpr (sizeof(T) == 1) __builtin_prefetch(b + 64 * q + kAhead);
      __m256i weights[kVectors];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) weights[v] = load(b + 64 * q + 16 * v);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        std::int64_t four = 0;
        std::memcpy(&four, a + r * lda + 4 * q, sizeof four);
        __m256i quad = _mm256_set1_epi64x(four);
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
          at[r][v] = _mm256_add_epi32(at[r][v], _mm256_madd_epi16(quad, weights[v]));
        }
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; v += 2) {
        const __m256i pairs = _mm256_hadd_epi32(at[r][v], at[r][v + 1]);
        _mm256_store_si256(reinterpret_cast<__m256i*>(sums + r * stride + 4 * v),
                           _mm256_permute4x64_epi64(pairs, 0xD8));
      }
    }
  }
};

}  // namespace oasr::kernels::avx2
