#include "kernels/peak/float_loop.h"
#include "kernels/peak/lanes.h"
#include "kernels/simd/avx2.h"

namespace oasr::kernels {

double int8_peak_avx2(long rounds) {
  constexpr int kChains = 12;
  const __m256i a = _mm256_set1_epi16(3), b = _mm256_set1_epi16(5);
  __m256i sums[kChains] = {};
  for (long i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) {
      // As intrinsics the product would leave the loop, and the sums the registers.
      __m256i pair;
      asm volatile("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0" : "+x"(sums[c]), "=&x"(pair) : "x"(a), "x"(b));
    }
  }
  return 2.0 * 16 * kChains * static_cast<double>(rounds);
}

double float32_peak_avx2(long rounds) { return float_peak_loop<avx2::Simd>(rounds); }

}  // namespace oasr::kernels
