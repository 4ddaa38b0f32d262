#include <vector>

#include "kernels/scaled_conv/op.h"

namespace oasr::kernels {
namespace {

// Calls visit(row, b, oy, ox) for every output.
template <class Visit>
void for_outputs(const ConvGeometry& g, Visit visit) {
  std::int64_t row = 0;
  for (std::int64_t b = 0; b < g.batch; ++b) {
    for (std::int64_t oy = 0; oy < g.out_height(); ++oy) {
      for (std::int64_t ox = 0; ox < g.out_width(); ++ox, ++row) visit(row, b, oy, ox);
    }
  }
}

// Calls visit(x, r, s): the pixel of every tap of an output, null outside of the input.
template <class T, class Visit>
void for_taps(const ConvGeometry& g, const T* x, std::int64_t b, std::int64_t oy, std::int64_t ox, Visit visit) {
  const ConvAxis& v = g.vertical;
  const ConvAxis& h = g.horizontal;
  for (std::int64_t r = 0; r < v.taps; ++r) {
    for (std::int64_t s = 0; s < h.taps; ++s) {
      const std::int64_t line = oy * v.stride - v.before + r * v.dilation;
      const std::int64_t column = ox * h.stride - h.before + s * h.dilation;
      const bool inside = line >= 0 && line < g.height && column >= 0 && column < g.width;
      visit(inside ? x + b * g.stride_batch + line * g.stride_row + column * g.stride_pixel : nullptr);
    }
  }
}

// One output row from its receptive field, K int8 values.
template <class Args>
void multiply(const Args& args, const std::vector<std::int8_t>& field, std::int64_t row, const FloatOutput& out) {
  scaled_mm_reference({.a = field.data(), .lda = args.weight->k(),
                       .a_scale = ActivationScale::per_tensor(args.x_scale), .m = 1,
                       .weight = args.weight, .bias = args.bias, .activation = args.activation},
                      {.residual = out.residual == nullptr ? nullptr : out.residual + row * out.ldr,
                       .ldr = out.ldr, .alpha = out.alpha, .y = out.y + row * out.ldy, .ldy = out.ldy});
}

}  // namespace

void scaled_conv_reference(const ScaledConvArgs& args, const FloatOutput& out) {
  const ConvGeometry& g = args.geometry;
  std::vector<std::int8_t> field(static_cast<std::size_t>(g.k()));
  for_outputs(g, [&](std::int64_t row, std::int64_t b, std::int64_t oy, std::int64_t ox) {
    std::size_t at = 0;
    for_taps(g, args.x, b, oy, ox, [&](const std::int8_t* pixel) {
      for (std::int64_t c = 0; c < g.channels; ++c) field[at++] = pixel == nullptr ? std::int8_t{0} : pixel[c];
    });
    multiply(args, field, row, out);
  });
}

NotFinite scaled_conv_static_reference(const StaticScaledConvArgs& args, const FloatOutput& out) {
  const ConvGeometry& g = args.geometry;
  std::vector<std::int8_t> field(static_cast<std::size_t>(g.k()));
  NotFinite found;
  for_outputs(g, [&](std::int64_t row, std::int64_t b, std::int64_t oy, std::int64_t ox) {
    std::int64_t at = 0;
    for_taps(g, args.x, b, oy, ox, [&](const float* pixel) {
      std::int8_t* q = field.data() + at;
      std::fill_n(q, g.channels, std::int8_t{0});
      if (pixel != nullptr && quantize_static_reference({.x = pixel, .ldx = g.channels, .m = 1, .k = g.channels,
                                                         .multiplier = args.multiplier + at, .q = q, .ldq = g.channels})) {
        found.merge({row});
      }
      at += g.channels;
    });
    multiply(args, field, row, out);
  });
  return found;
}

}  // namespace oasr::kernels
