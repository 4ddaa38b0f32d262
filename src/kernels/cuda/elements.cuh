// One thread an element of a matrix: neighbours in a row side by side, whatever the shape.
#pragma once

#include "kernels/cuda/launch.cuh"

namespace oasr::kernels::cuda {

inline constexpr unsigned kElementThreads = 256;  // of a block: 8 rows of 32 columns
struct Element {
  std::int64_t row, column;  // may lie outside the matrix
};
__device__ inline Element element() {
  return {std::int64_t{blockIdx.x} * 8 + threadIdx.x / 32, std::int64_t{blockIdx.y} * 32 + threadIdx.x % 32};
}
inline Grid elements(std::int64_t rows, std::int64_t columns) {
  return {.x = divide_up(rows, 8), .y = divide_up(columns, 32)};
}

}  // namespace oasr::kernels::cuda
