// Where the inputs of a convolution's outputs lie: shared by the float and the int8 op.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace oasr::kernels {

// One axis of a convolution: kernel taps, stride, dilation, zeros before and after.
struct ConvAxis {
  std::int64_t taps = 1, stride = 1, dilation = 1;
  std::int64_t before = 0, after = 0;
  // Outputs for `size` inputs; 0 when the padded input is shorter than the kernel.
  std::int64_t outputs(std::int64_t size) const {
    const std::int64_t span = size + before + after - ((taps - 1) * dilation + 1);
    return span < 0 ? 0 : span / stride + 1;
  }
};

// An input [batch, height, width, channels], channels contiguous, and the kernel that runs over it. Output
// rows are numbered (b · out_height + oy) · out_width + ox.
struct ConvGeometry {
  std::int64_t batch = 1, height = 1, width = 0, channels = 0;
  std::int64_t stride_batch = 0, stride_row = 0, stride_pixel = 0;  // in elements
  ConvAxis vertical, horizontal;

  std::int64_t out_height() const { return vertical.outputs(height); }
  std::int64_t out_width() const { return horizontal.outputs(width); }
  std::int64_t rows() const { return batch * out_height() * out_width(); }
  std::int64_t k() const { return vertical.taps * horizontal.taps * channels; }
};

// Calls part(from, at, count) for the runs of output `row`'s receptive field, in the order of the weight
// [taps of vertical, taps of horizontal, channels]: `count` values from element `at` on are x[from …], or
// zeros (padding) where from is negative.
template <class Part>
void for_field(const ConvGeometry& g, std::int64_t row, Part part) {
  const ConvAxis& v = g.vertical;
  const ConvAxis& h = g.horizontal;
  const std::int64_t across = g.out_width(), down = g.out_height();
  const std::int64_t ox = row % across, oy = row / across % down, b = row / across / down;
  const std::int64_t x0 = ox * h.stride - h.before, last = x0 + (h.taps - 1) * h.dilation;
  const bool whole = x0 >= 0 && last < g.width && h.dilation == 1 && g.stride_pixel == g.channels;
  std::int64_t at = 0;
  for (std::int64_t r = 0; r < v.taps; ++r) {
    const std::int64_t y = oy * v.stride - v.before + r * v.dilation;
    const bool inside = y >= 0 && y < g.height;
    const std::int64_t line = b * g.stride_batch + y * g.stride_row;
    if (whole || !inside) {
      part(inside ? line + x0 * g.stride_pixel : -1, at, h.taps * g.channels);
      at += h.taps * g.channels;
      continue;
    }
    for (std::int64_t s = 0; s < h.taps; ++s, at += g.channels) {
      const std::int64_t x = x0 + s * h.dilation;
      part(x >= 0 && x < g.width ? line + x * g.stride_pixel : -1, at, g.channels);
    }
  }
}

// The receptive field of output `row`: k() values.
template <class T>
void gather_field(const ConvGeometry& g, const T* x, std::int64_t row, T* to) {
  for_field(g, row, [&](std::int64_t from, std::int64_t at, std::int64_t count) {
    if (from < 0) {
      std::fill_n(to + at, count, T{0});
    } else if (count < 16) {  // a call costs more than the copy
      for (std::int64_t i = 0; i < count; ++i) to[at + i] = x[from + i];
    } else {
      std::memcpy(to + at, x + from, static_cast<std::size_t>(count) * sizeof(T));
    }
  });
}

}  // namespace oasr::kernels
