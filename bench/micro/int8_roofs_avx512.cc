#include <immintrin.h>

#include "int8_roofs.h"

namespace oasr::bench {

void read_all_avx512(const std::byte* data, std::size_t bytes) {
  __m512i all[4] = {};
  for (std::size_t i = 0; i + 256 <= bytes; i += 256) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) all[v] = _mm512_or_si512(all[v], _mm512_load_si512(data + i + 64 * v));
  }
  for (auto& v : all) asm volatile("" : "+v"(v));
}

}  // namespace oasr::bench
