// Receptive fields of a convolution as rows of a matrix: what for_field() of conv_geometry.h does, on a GPU.
#pragma once

#include "base/check.h"
#include "kernels/conv_geometry.h"
#include "kernels/cuda/launch.cuh"

namespace oasr::kernels::cuda {

// Rows that are gathered at once: scratch memory for about 64 MiB of them.
inline std::int64_t gather_rows(std::int64_t rows, std::int64_t row_bytes) {
  constexpr std::int64_t kBytes = 64 << 20;
  return std::min(rows, std::max<std::int64_t>(1, kBytes / row_bytes));
}

struct GatherGeometry {
  ConvGeometry of;
  std::int64_t across, down, k;  // of the outputs; elements of a field
};

// to[r · ld + i] = convert(in, i, row) of element i of the field of output first_row + r, or a zero where it
// is padding or after the field. A block has a field.
template <class In, class Out, class Convert>
__global__ void gather_fields(GatherGeometry geometry, const In* x, std::int64_t first_row, Out* to,
                              std::int64_t ld, Convert convert) {
  cuda::in_order();
  const ConvGeometry& g = geometry.of;
  const std::int64_t row = first_row + blockIdx.x;
  const std::int64_t ox = row % geometry.across, oy = row / geometry.across % geometry.down;
  const std::int64_t b = row / geometry.across / geometry.down;
  const int channels = static_cast<int>(g.channels), taps = static_cast<int>(g.horizontal.taps);
  const int count = static_cast<int>(geometry.k);
  for (int i = threadIdx.x; i < static_cast<int>(ld); i += blockDim.x) {
    const int tap = i / channels, channel = i % channels;
    const std::int64_t line = oy * g.vertical.stride - g.vertical.before + tap / taps * g.vertical.dilation;
    const std::int64_t column =
        ox * g.horizontal.stride - g.horizontal.before + tap % taps * g.horizontal.dilation;
    Out value{};
    if (i < count && line >= 0 && line < g.height && column >= 0 && column < g.width) {
      value =
          convert(x[b * g.stride_batch + line * g.stride_row + column * g.stride_pixel + channel], i, row);
    }
    to[blockIdx.x * ld + i] = value;
  }
}

// Gathers blocks of fields into scratch memory, rows `ld` apart, and calls multiply(first row, rows, fields)
// on each.
template <class Out, class In, class Convert, class Multiply>
void over_fields(Gpu& gpu, const char* name, const ConvGeometry& g, const In* x, std::int64_t ld,
                 Convert convert, Multiply multiply) {
  const std::int64_t rows = g.rows(), row_bytes = ld * static_cast<std::int64_t>(sizeof(Out));
  if (rows == 0) return;
  const std::int64_t block = gather_rows(rows, row_bytes);
  auto* fields = reinterpret_cast<Out*>(gpu.scratch(static_cast<std::size_t>(block * row_bytes)));
  const GatherGeometry geometry{g, g.out_width(), g.out_height(), g.k()};
  for (std::int64_t first = 0; first < rows; first += block) {
    const std::int64_t count = std::min(block, rows - first);
    launch(gpu, name, gather_fields<In, Out, Convert>, {.x = count}, 128, 0, geometry, x, first, fields, ld,
           convert);
    multiply(first, count, fields);
  }
}

}  // namespace oasr::kernels::cuda
