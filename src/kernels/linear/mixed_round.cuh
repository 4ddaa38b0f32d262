// linear() in mixed precision: x as operands in memory of the queue, rounded once for all tiles that read it.
#pragma once

#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/in_order.cuh"
#include "kernels/cuda/mixed.cuh"

namespace oasr::kernels::cuda {

// Rows of floats and where their operands go; all strides are in numbers, to_ld is a multiple of 8.
struct MixedRounding {
  const float* x;
  std::int64_t ld, rows, columns;
  std::int64_t last;  // columns of the last row
  bool vectors;       // x can be read 16 bytes at a time
  std::uint16_t* to;
  std::int64_t to_ld;
};

// A thread has eight columns; zeros fill the eight in which a row ends.
template <class E>
__global__ void __launch_bounds__(kElementThreads) mixed_round(const __grid_constant__ MixedRounding p) {
  cuda::in_order();
  const Element at = element();
  const std::int64_t column = 8 * at.column;
  const std::int64_t left = (at.row + 1 == p.rows ? p.last : p.columns) - column;
  if (at.row >= p.rows || left <= 0) return;
  const float* from = p.x + at.row * p.ld + column;
  float v[8];
  if (p.vectors && left >= 8) {
    const float4 low = *reinterpret_cast<const float4*>(from),
                 high = *reinterpret_cast<const float4*>(from + 4);
    v[0] = low.x, v[1] = low.y, v[2] = low.z, v[3] = low.w;
    v[4] = high.x, v[5] = high.y, v[6] = high.z, v[7] = high.w;
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] = i < left ? from[i] : 0.0f;
  }
  *reinterpret_cast<uint4*>(p.to + at.row * p.to_ld + column) = {
      round_two<E>(v[0], v[1]), round_two<E>(v[2], v[3]), round_two<E>(v[4], v[5]), round_two<E>(v[6], v[7])};
}

}  // namespace oasr::kernels::cuda
