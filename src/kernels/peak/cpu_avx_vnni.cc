#include <immintrin.h>

#include "kernels/peak/lanes.h"

namespace oasr::kernels {

double int8_peak_avx_vnni(long rounds) {
  constexpr int kChains = 12;
  const __m256i a = _mm256_set1_epi8(3), b = _mm256_set1_epi8(5);
  __m256i sums[kChains] = {};
  for (long i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) asm volatile("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sums[c]) : "x"(a), "x"(b));
  }
  return 2.0 * 32 * kChains * static_cast<double>(rounds);
}

}  // namespace oasr::kernels
