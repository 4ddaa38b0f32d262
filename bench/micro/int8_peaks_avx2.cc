#include <immintrin.h>

#include "int8_peaks.h"

namespace oasr::bench {
namespace {

constexpr int kChains = 12;

template <class Step>
void loop(long rounds, Step step) {
  __m256i sums[kChains] = {};
  for (long i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) step(sums[c]);
  }
  for (auto& sum : sums) asm volatile("" : "+x"(sum));
}

}  // namespace

double int8_peak_avx2(long rounds) {
  const __m256i a = _mm256_set1_epi16(3), b = _mm256_set1_epi16(5);
  loop(rounds, [&](__m256i& sum) {
    __m256i pair;
    asm volatile("vpmaddwd %2, %1, %0" : "=x"(pair) : "x"(a), "x"(b));
    sum = _mm256_add_epi32(sum, pair);
  });
  return 2.0 * 16 * kChains * static_cast<double>(rounds);
}

double int8_peak_avx2_sign_split(long rounds) {
  const __m256i a = _mm256_set1_epi8(-3), b = _mm256_set1_epi8(5), ones = _mm256_set1_epi16(1);
  const __m256i magnitude = _mm256_abs_epi8(a);
  loop(rounds, [&](__m256i& sum) {
    __m256i signs, pairs, fours;
    asm volatile("vpsignb %2, %1, %0" : "=x"(signs) : "x"(b), "x"(a));
    asm volatile("vpmaddubsw %2, %1, %0" : "=x"(pairs) : "x"(magnitude), "x"(signs));
    asm volatile("vpmaddwd %2, %1, %0" : "=x"(fours) : "x"(pairs), "x"(ones));
    sum = _mm256_add_epi32(sum, fours);
  });
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
