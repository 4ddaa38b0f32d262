#include <immintrin.h>

#include "kernels/peak/lanes.h"

namespace oasr::kernels {

double int8_peak_avx512_vnni(long rounds) {
  constexpr int kChains = 24;
  const __m512i a = _mm512_set1_epi8(3), b = _mm512_set1_epi8(5);
  __m512i sums[kChains] = {};
  for (long i = 0; i < rounds; ++i) {
#pragma GCC unroll 24
    for (int c = 0; c < kChains; ++c) asm volatile("vpdpbusd %2, %1, %0" : "+v"(sums[c]) : "v"(a), "v"(b));
  }
  return 2.0 * 64 * kChains * static_cast<double>(rounds);
}

}  // namespace oasr::kernels
