// linear() on a GPU, for linear.cc and ops made of it: all of args is device memory, the weight is placed.
#pragma once

#include <array>
#include <cstdint>

#include "device/gpu.h"
#include "kernels/linear/op.h"

namespace oasr::kernels {

void linear_cuda(Gpu& gpu, const LinearArgs& args);

// How a product is cut into blocks of threads: a warp for a panel and up to 8 rows, or tiles of rows and
// channels. Which one is used changes no bit.
enum class LinearTile : std::uint8_t { few_rows, m64n64, m128n64 };
inline constexpr std::array kLinearTiles = {LinearTile::few_rows, LinearTile::m64n64, LinearTile::m128n64};
LinearTile linear_tile(std::int64_t m, std::int64_t n, int multiprocessors);
// With a tile of the caller's choice: tests, benchmarks.
void linear_cuda(Gpu& gpu, const LinearArgs& args, LinearTile tile);

}  // namespace oasr::kernels
