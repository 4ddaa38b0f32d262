#include <vector>

#include "kernels/scaled_conv/op.h"

namespace oasr::kernels {

void scaled_conv_reference(const ScaledConvArgs& args, const FloatOutput& out) {
  const ConvAxis& v = args.vertical;
  const ConvAxis& h = args.horizontal;
  std::vector<std::int8_t> field(static_cast<std::size_t>(args.weight->k()));
  std::int64_t row = 0;
  for (std::int64_t b = 0; b < args.batch; ++b) {
    for (std::int64_t oy = 0; oy < args.out_height(); ++oy) {
      for (std::int64_t ox = 0; ox < args.out_width(); ++ox, ++row) {
        std::size_t at = 0;
        for (std::int64_t r = 0; r < v.taps; ++r) {
          for (std::int64_t s = 0; s < h.taps; ++s) {
            const std::int64_t y = oy * v.stride - v.before + r * v.dilation;
            const std::int64_t x = ox * h.stride - h.before + s * h.dilation;
            const bool inside = y >= 0 && y < args.height && x >= 0 && x < args.width;
            const std::int8_t* pixel = args.x + b * args.stride_batch + y * args.stride_row + x * args.stride_pixel;
            for (std::int64_t c = 0; c < args.channels(); ++c) field[at++] = inside ? pixel[c] : std::int8_t{0};
          }
        }
        scaled_mm_reference({.a = field.data(), .lda = args.weight->k(),
                             .a_scale = ActivationScale::per_tensor(args.x_scale), .m = 1,
                             .weight = args.weight, .bias = args.bias, .activation = args.activation},
                            {.residual = out.residual == nullptr ? nullptr : out.residual + row * out.ldr,
                              .ldr = out.ldr, .alpha = out.alpha, .y = out.y + row * out.ldy, .ldy = out.ldy});
      }
    }
  }
}

}  // namespace oasr::kernels
