// The dot product of AVX-VNNI: dot_avx512_vnni.h with vectors of half the size.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/quantize/vectors_avx2.h"
#include "kernels/scaled_mm/packed_int8_weight.h"

namespace oasr::kernels::avx2 {

struct VnniDot {
  struct Simd : Int8Simd {};
  using Element = std::uint8_t;
  using Weight = std::int8_t;
  // Bytes to read ahead of few rows: the hardware stops at every page.
  static constexpr std::int64_t kAhead = 2048;
  // Twelve accumulators, two vectors of weights, one of activations.
  static constexpr int kMaxRows = 6;
  static constexpr int kMaxPanels = 1;
  template <int kRows>
  static constexpr int kChains = kRows == 1 ? 4 : (kRows == 2 ? 2 : 1);

  static void prepare(const std::int8_t* from, std::int64_t k, std::uint8_t* to) {
    const __m256i flip = _mm256_set1_epi8(-128);
    std::int64_t i = 0;
    for (; i + 32 <= k; i += 32) {
      const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), _mm256_xor_si256(bytes, flip));
    }
    for (; i < k; ++i) to[i] = static_cast<std::uint8_t>(from[i] + 128);
    for (; i % PackedInt8Weight::kQuad != 0; ++i) to[i] = 0;
  }

  template <int kRows, int kPanels, int kChains>
  static void tile(const std::uint8_t* a, std::int64_t lda, const std::int8_t* b, std::int64_t,
                   std::int64_t quads, const std::int32_t* offset, std::int32_t* sums, std::int64_t stride) {
    static_assert(kPanels == 1);
    __m256i at[kRows][2 * kChains];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < 2 * kChains; ++v) {
        at[r][v] = v < 2 ? _mm256_load_si256(reinterpret_cast<const __m256i*>(offset) + v)
                         : _mm256_setzero_si256();
      }
    }
    std::int64_t q = 0;
    for (; q + kChains <= quads; q += kChains) {
      if constexpr (kChains > 1) prefetch<kChains>(b + 64 * q + kAhead);
      step<kChains>(a + 4 * q, lda, b + 64 * q, at);
    }
    for (; q < quads; ++q) step<1>(a + 4 * q, lda, b + 64 * q, at);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int v = 2; v < 2 * kChains; ++v) at[r][v % 2] = _mm256_add_epi32(at[r][v % 2], at[r][v]);
#pragma GCC unroll 8
      for (int v = 0; v < 2; ++v) {
        _mm256_store_si256(reinterpret_cast<__m256i*>(sums + r * stride) + v, at[r][v]);
      }
    }
  }

 private:
  template <int kLines>
  [[gnu::always_inline]] static void prefetch(const std::int8_t* lines) {
#pragma GCC unroll 8
    for (int i = 0; i < kLines; ++i) __builtin_prefetch(lines + 64 * i);
  }

  // kCount consecutive quads of a panel, each into accumulators of its own.
  template <int kCount, int kRows, int kAcross>
  [[gnu::always_inline]] static void step(const std::uint8_t* a, std::int64_t lda, const std::int8_t* b,
                                          __m256i (&at)[kRows][kAcross]) {
    __m256i weights[2 * kCount];
#pragma GCC unroll 8
    for (int v = 0; v < 2 * kCount; ++v) {
      weights[v] = _mm256_load_si256(reinterpret_cast<const __m256i*>(b) + v);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int c = 0; c < kCount; ++c) {
        std::int32_t four = 0;
        std::memcpy(&four, a + r * lda + 4 * c, sizeof four);
        const __m256i quad = _mm256_set1_epi32(four);
        at[r][2 * c] = _mm256_dpbusd_avx_epi32(at[r][2 * c], quad, weights[2 * c]);
        at[r][2 * c + 1] = _mm256_dpbusd_avx_epi32(at[r][2 * c + 1], quad, weights[2 * c + 1]);
      }
    }
  }
};

}  // namespace oasr::kernels::avx2
