// The vectors of simd/avx2.h with conversions to and from int8 and int32.
#pragma once

#include "kernels/simd/avx2.h"

namespace oasr::kernels::avx2 {

struct Int8Simd : Simd {
  static V convert(const std::int32_t* p) {
    return _mm256_cvtepi32_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  // The first n elements, rounded to nearest even. All are in [-127, 127] or NaN (any value then).
  static void round_first(std::int8_t* p, V v, int n) {
    const __m256i whole = _mm256_cvtps_epi32(v);
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
    const __m128i bytes = _mm_packs_epi16(words, words);
    if (n == kWidth) {
      _mm_storel_epi64(reinterpret_cast<__m128i*>(p), bytes);
      return;
    }
    const auto all = static_cast<std::uint64_t>(_mm_cvtsi128_si64(bytes));
    for (int i = 0; i < n; ++i) p[i] = static_cast<std::int8_t>(all >> (8 * i));
  }
  // The greater of `most` and |v| as bit patterns: NaN above infinity above all numbers.
  static V greater_magnitude(V most, V v) {
    const __m256i bits = _mm256_and_si256(_mm256_castps_si256(v), _mm256_set1_epi32(0x7FFFFFFF));
    return _mm256_castsi256_ps(_mm256_max_epi32(_mm256_castps_si256(most), bits));
  }
  static std::int32_t greatest_magnitude(V v) {
    const __m256i all = _mm256_castps_si256(v);
    const __m128i four = _mm_max_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
    const __m128i two = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4E));
    return _mm_cvtsi128_si32(_mm_max_epi32(two, _mm_shuffle_epi32(two, 0xB1)));
  }
};

}  // namespace oasr::kernels::avx2
