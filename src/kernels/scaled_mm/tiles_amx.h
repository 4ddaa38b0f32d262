// AMX tiles: eight registers of 16 rows × 64 bytes. Only for files built with these flags.
//
// Inline assembly, because the compilers' intrinsics want literal register numbers, which templates
// can not give, and g++ 12 does not tell its optimiser that they read memory.
#pragma once

#include <cstdint>

namespace oasr::kernels::amx {

// Every tile is whole while an object lives; the tiles are free again after, so that the system need
// not save them.
class Tiles {
 public:
  Tiles() {
    struct alignas(64) Configuration {
      std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
      std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    } const whole;
    asm volatile("ldtilecfg %0" ::"m"(whole));
  }
  ~Tiles() { asm volatile("tilerelease"); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;

  template <int kTile>
  [[gnu::always_inline]] static void zero() {
    asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
  }
  // Rows are `stride` bytes apart.
  template <int kTile>
  [[gnu::always_inline]] static void load(const void* from, std::int64_t stride) {
    asm volatile("tileloadd (%1,%2,1), %%tmm%c0" ::"i"(kTile), "r"(from), "r"(stride) : "memory");
  }
  template <int kTile>
  [[gnu::always_inline]] static void store(std::int32_t* to, std::int64_t stride) {
    asm volatile("tilestored %%tmm%c0, (%1,%2,1)" ::"i"(kTile), "r"(to), "r"(stride) : "memory");
  }
  // kSums(r, n) += Σ kA(r, k) · kB(k / 4, n, k % 4) over 64 k, s8 · s8.
  template <int kSums, int kA, int kB>
  [[gnu::always_inline]] static void multiply() {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSums), "i"(kA), "i"(kB));
  }
};

}  // namespace oasr::kernels::amx
