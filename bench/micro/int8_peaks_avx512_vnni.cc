#include <immintrin.h>

#include "int8_peaks.h"

namespace oasr::bench {

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

void read_all_avx512(const std::byte* data, std::size_t bytes) {
  __m512i all[4] = {};
  for (std::size_t i = 0; i + 256 <= bytes; i += 256) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) all[v] = _mm512_or_si512(all[v], _mm512_load_si512(data + i + 64 * v));
  }
  for (auto& v : all) asm volatile("" : "+v"(v));
}

}  // namespace oasr::bench
