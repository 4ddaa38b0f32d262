// The dot product of AVX2: vpmaddubsw of codes and activations. A pair of products is 15 · 128 · 2 at most,
// so eight of them add up in 16 bits before a vpmaddwd, with the group's scale, widens them.
#pragma once

#include "kernels/quantize/vectors_avx2.h"
#include "kernels/scaled_mm_int4/product.h"

namespace oasr::kernels::avx2 {

struct Int4Dot {
  struct Simd : Int8Simd {};
  // Bytes to read ahead of few rows: the hardware stops at every page.
  static constexpr std::int64_t kAhead = 2048;
  // Eight accumulators, two vectors of codes, one of activations, a product, the mask.
  static constexpr int kMaxRows = 4, kMaxPanels = 1, kStreamRows = 4;
  template <int kRows>
  static constexpr int kChains = 1;

  static std::int32_t sum(const std::int8_t* a, std::int64_t count) {
    const __m256i bytes = _mm256_set1_epi8(1), words = _mm256_set1_epi16(1);
    __m256i total = _mm256_setzero_si256();
    for (std::int64_t i = 0; i < count; i += 32) {
      const __m256i pairs =
          _mm256_maddubs_epi16(bytes, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a + i)));
      total = _mm256_add_epi32(total, _mm256_madd_epi16(pairs, words));
    }
    const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(total), _mm256_extracti128_si256(total, 1));
    const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4E));
    return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xB1)));
  }

  template <int kRows, int kPanels, int kChains>
  static void tile(const Int4Operands& x, std::int32_t* sums, std::int64_t stride) {
    static_assert(kPanels == 1 && kChains == 1);
    constexpr std::int64_t kLines = 4;  // that add up in 16 bits: eight quads
    static_assert(PackedInt4Weight::kDepth % (kLines * PackedInt4Weight::kLineK) == 0);
    const std::int8_t* a = x.a;
    const std::uint8_t* b = x.b;
    for (std::int64_t g = 0; g < x.groups; ++g) {
      const std::uint8_t* levels = b + x.lines * 64;
      start_group<kRows>(x, g, levels, sums, stride);
      for (std::int64_t line = 0; line < x.lines; line += kLines) {
        __m256i at[kRows][2];
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) at[r][0] = at[r][1] = _mm256_setzero_si256();
#pragma GCC unroll 4
        for (std::int64_t i = 0; i < kLines; ++i, a += 8, b += 64) step(a, x.lda, b, at);
#pragma GCC unroll 2
        for (int v = 0; v < 2; ++v) {
          const __m256i scale = scales(levels + 32 * v);
#pragma GCC unroll 8
          for (int r = 0; r < kRows; ++r) add(sums + r * stride + 8 * v, _mm256_madd_epi16(at[r][v], scale));
        }
      }
      b += 64;
    }
  }

 private:
  // Four k of eight channels: the low or the high halves of half a line.
  [[gnu::always_inline]] static __m256i codes(const std::uint8_t* half_line, int half) {
    const __m256i both = _mm256_load_si256(reinterpret_cast<const __m256i*>(half_line));
    return _mm256_and_si256(half == 0 ? both : _mm256_srli_epi16(both, 4), _mm256_set1_epi8(15));
  }

  // The scales of eight channels, for both 16-bit sums of each.
  [[gnu::always_inline]] static __m256i scales(const std::uint8_t* levels) {
    const __m256i pairs = _mm256_load_si256(reinterpret_cast<const __m256i*>(levels));
    return _mm256_or_si256(_mm256_and_si256(pairs, _mm256_set1_epi32(0xFFFF)), _mm256_slli_epi32(pairs, 16));
  }

  [[gnu::always_inline]] static void add(std::int32_t* to, __m256i v) {
    auto* at = reinterpret_cast<__m256i*>(to);
    _mm256_store_si256(at, _mm256_add_epi32(_mm256_load_si256(at), v));
  }

  // at(r, ·) of 16 bits += a(r, ·) · codes of eight k.
  template <int kRows>
  [[gnu::always_inline]] static void step(const std::int8_t* a, std::int64_t lda, const std::uint8_t* b,
                                          __m256i (&at)[kRows][2]) {
    __builtin_prefetch(b + kAhead);
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const __m256i weights[2] = {codes(b, half), codes(b + 32, half)};
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        std::int32_t four = 0;
        std::memcpy(&four, a + r * lda + 4 * half, sizeof four);
        const __m256i quad = _mm256_set1_epi32(four);
#pragma GCC unroll 2
        for (int v = 0; v < 2; ++v) {
          at[r][v] = _mm256_add_epi16(at[r][v], _mm256_maddubs_epi16(weights[v], quad));
          // Now, not later: g++ 12 would add products to each other first, and run out of registers.
          asm("" : "+x"(at[r][v]));
        }
      }
    }
  }

  // sums(r, ·) -= z · Σ a(r) of group g; the first group starts them.
  template <int kRows>
  [[gnu::always_inline]] static void start_group(const Int4Operands& x, std::int64_t g,
                                                 const std::uint8_t* levels, std::int32_t* sums,
                                                 std::int64_t stride) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      const __m256i minus_zero =
          _mm256_srai_epi32(_mm256_load_si256(reinterpret_cast<const __m256i*>(levels + 32 * v)), 16);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        std::int32_t* to = sums + r * stride + 8 * v;
        const __m256i shift = _mm256_mullo_epi32(minus_zero, _mm256_set1_epi32(x.a_sums[r * x.groups + g]));
        if (g == 0) {
          _mm256_store_si256(reinterpret_cast<__m256i*>(to), shift);
        } else {
          add(to, shift);
        }
      }
    }
  }
};

}  // namespace oasr::kernels::avx2
