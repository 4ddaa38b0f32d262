#include <vector>

#include "kernels/conv2d/op.h"

namespace oasr::kernels {

void conv2d_reference(const Conv2dArgs& args) {
  const ConvGeometry& g = args.geometry;
  std::vector<float> field(static_cast<std::size_t>(g.k()));
  std::int64_t row = 0;
  for (std::int64_t b = 0; b < g.batch; ++b) {
    for (std::int64_t oy = 0; oy < g.out_height(); ++oy) {
      for (std::int64_t ox = 0; ox < g.out_width(); ++ox, ++row) {
        std::size_t at = 0;
        for (std::int64_t r = 0; r < g.vertical.taps; ++r) {
          for (std::int64_t s = 0; s < g.horizontal.taps; ++s) {
            const std::int64_t y = oy * g.vertical.stride - g.vertical.before + r * g.vertical.dilation;
            const std::int64_t x = ox * g.horizontal.stride - g.horizontal.before + s * g.horizontal.dilation;
            const bool inside = y >= 0 && y < g.height && x >= 0 && x < g.width;
            const float* pixel = args.x + b * g.stride_batch + y * g.stride_row + x * g.stride_pixel;
            for (std::int64_t c = 0; c < g.channels; ++c) field[at++] = inside ? pixel[c] : 0.0f;
          }
        }
        linear_reference({.x = field.data(), .ldx = g.k(), .m = 1, .weight = args.weight, .bias = args.bias,
                          .activation = args.activation, .y = args.y + row * args.ldy, .ldy = args.ldy});
      }
    }
  }
}

}  // namespace oasr::kernels
