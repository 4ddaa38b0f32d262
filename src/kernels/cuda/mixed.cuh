// Mixed precision on the matrix units: operands of 16 bits (E is Half or BFloat16), sums in float32.
//
// Operands of mma.m16n8k16 as a warp holds them, lane = 4 g + t: a[0], a[1] are rows g and g + 8 at k = 2 t and
// 2 t + 1, a[2], a[3] the same at k + 8; b[0], b[1] are column g at those k; sums are rows g (0, 1) and g + 8 (2, 3)
// at columns 2 t and 2 t + 1.
#pragma once

#include <type_traits>

#include "kernels/cuda/widen.cuh"

namespace oasr::kernels::cuda {

// Rounded to nearest even; a becomes the lower half of the word. What is too large becomes infinity.
template <class E>
__device__ unsigned round_two(float a, float b) {
  static_assert(std::is_same_v<E, Half> || std::is_same_v<E, BFloat16>);
  unsigned word;
  if constexpr (std::is_same_v<E, Half>) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(b), "f"(a));
  } else {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(b), "f"(a));
  }
  return word;
}

// Two stored numbers of a word as operands.
template <class E, class T>
__device__ unsigned as_operands(unsigned word) {
  static_assert(sizeof(T) == 2);
  if constexpr (std::is_same_v<E, T>) {
    return word;
  } else {
    const T low{static_cast<std::uint16_t>(word)}, high{static_cast<std::uint16_t>(word >> 16)};
    return round_two<E>(widen(low), widen(high));
  }
}

// Whether the lower or the upper number of a word is infinity or NaN.
template <class E>
__device__ bool low_not_finite(unsigned word) {
  constexpr unsigned kExponent = std::is_same_v<E, Half> ? 0x7c00 : 0x7f80;
  return (word & kExponent) == kExponent;
}
template <class E>
__device__ bool high_not_finite(unsigned word) {
  return low_not_finite<E>(word >> 16);
}

// Four matrices of 8 x 8 numbers of 16 bits in shared memory; lanes 8 i … 8 i + 7 give the addresses of the rows of
// matrix i (multiples of 16 bytes). A lane gets, of matrix i, row g at columns 2 t and 2 t + 1.
__device__ inline void load_rows(unsigned (&to)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}
// The same of the transposed matrices: column g at rows 2 t and 2 t + 1.
__device__ inline void load_columns(unsigned (&to)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}

// sum += a · b, 16 rows, 8 columns, 16 deep.
template <class E>
__device__ void multiply_add(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  if constexpr (std::is_same_v<E, Half>) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}

}  // namespace oasr::kernels::cuda
