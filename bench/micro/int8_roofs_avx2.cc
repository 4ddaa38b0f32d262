#include <immintrin.h>

#include "int8_roofs.h"

namespace oasr::bench {
double int8_peak_avx2_sign_split(long rounds) {
  constexpr int kChains = 10;
  const __m256i a = _mm256_set1_epi8(-3), b = _mm256_set1_epi8(5), ones = _mm256_set1_epi16(1);
  const __m256i magnitude = _mm256_abs_epi8(a);
  __m256i sums[kChains] = {};
  for (long i = 0; i < rounds; ++i) {
#pragma GCC unroll 10
    for (int c = 0; c < kChains; ++c) {
      __m256i product;
      asm volatile("vpsignb %2, %3, %1\n\tvpmaddubsw %1, %4, %1\n\tvpmaddwd %5, %1, %1\n\tvpaddd %1, %0, %0"
                   : "+x"(sums[c]), "=&x"(product)
                   : "x"(a), "x"(b), "x"(magnitude), "x"(ones));
    }
  }
  return 2.0 * 32 * kChains * static_cast<double>(rounds);
}

void read_all_avx2(const std::byte* data, std::size_t bytes) {
  __m256i all[4] = {};
  for (std::size_t i = 0; i + 128 <= bytes; i += 128) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      all[v] = _mm256_or_si256(all[v], _mm256_load_si256(reinterpret_cast<const __m256i*>(data + i) + v));
    }
  }
  for (auto& v : all) asm volatile("" : "+x"(v));
}

}  // namespace oasr::bench
