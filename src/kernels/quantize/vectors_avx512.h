// The vectors of simd/avx512.h with conversions to and from int8 and int32.
#pragma once

#include "kernels/simd/avx512.h"

namespace oasr::kernels::avx512 {

struct Int8Simd : Simd {
  static V convert(const std::int32_t* p) { return _mm512_cvtepi32_ps(_mm512_loadu_si512(p)); }
  // The first n elements, rounded to nearest even. All are in [-127, 127] or NaN (any value then).
  static void round_first(std::int8_t* p, V v, int n) {
    const __m128i bytes = _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(v));
    if (n == kWidth) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);  // many times faster than masked
    } else {
      _mm_mask_storeu_epi8(p, static_cast<__mmask16>((1u << n) - 1u), bytes);
    }
  }
  // The greater of `most` and |v| as bit patterns: NaN above infinity above all numbers.
  static V greater_magnitude(V most, V v) {
    const __m512i bits = _mm512_and_si512(_mm512_castps_si512(v), _mm512_set1_epi32(0x7FFFFFFF));
    return _mm512_castsi512_ps(_mm512_max_epi32(_mm512_castps_si512(most), bits));
  }
  static std::int32_t greatest_magnitude(V v) {
    return _mm512_reduce_max_epi32(_mm512_castps_si512(v));
  }
};

}  // namespace oasr::kernels::avx512
