#include <cstring>

#include "base/check.h"
#include "kernels/scaled_conv/op.h"
#include "kernels/scaled_mm/blocks.h"

namespace oasr::kernels {
namespace {

// Copies the taps of one kernel row: channels · horizontal.taps values, zero outside of the input.
void gather_row(const ScaledConvArgs& args, const std::int8_t* line, std::int64_t x0, std::int8_t* to) {
  const ConvAxis& h = args.horizontal;
  const auto channels = static_cast<std::size_t>(args.channels());
  const std::int64_t last = x0 + (h.taps - 1) * h.dilation;
  if (line != nullptr && x0 >= 0 && last < args.width && h.dilation == 1 &&
      args.stride_pixel == args.channels()) {
    std::memcpy(to, line + x0 * args.stride_pixel, static_cast<std::size_t>(h.taps) * channels);
    return;
  }
  for (std::int64_t s = 0; s < h.taps; ++s, to += channels) {
    const std::int64_t x = x0 + s * h.dilation;
    if (line != nullptr && x >= 0 && x < args.width) {
      std::memcpy(to, line + x * args.stride_pixel, channels);
    } else {
      std::memset(to, 0, channels);
    }
  }
}

// The receptive field of output `row`: K values, in the order of the weight.
void gather(const ScaledConvArgs& args, std::int64_t row, std::int8_t* to) {
  const ConvAxis& v = args.vertical;
  const ConvAxis& h = args.horizontal;
  const std::int64_t across = args.out_width(), down = args.out_height();
  const std::int64_t ox = row % across, oy = row / across % down, b = row / across / down;
  for (std::int64_t r = 0; r < v.taps; ++r, to += h.taps * args.channels()) {
    const std::int64_t y = oy * v.stride - v.before + r * v.dilation;
    const bool inside = y >= 0 && y < args.height;
    const std::int8_t* line = inside ? args.x + b * args.stride_batch + y * args.stride_row : nullptr;
    gather_row(args, line, ox * h.stride - h.before, to);
  }
}

}  // namespace

void scaled_conv(ExecContext& context, const ScaledConvArgs& args, const FloatOutput& out) {
  CHECK(args.weight->k() % (args.vertical.taps * args.horizontal.taps) == 0, "a weight of these taps");
  const ScaledMMArgs product{.a_scale = ActivationScale::per_tensor(args.x_scale), .m = args.rows(),
                             .weight = args.weight, .bias = args.bias, .activation = args.activation};
  const NotFinite found = multiply_blocks(
      context, product, out, false,
      [&](std::int64_t m0, std::int64_t count, const BlockScratch& scratch, ScaledMMArgs& block) {
        for (std::int64_t m = 0; m < count; ++m) gather(args, m0 + m, scratch.a + m * scratch.lda);
        block.a = scratch.a;
        block.lda = scratch.lda;
        return NotFinite{};
      });
  CHECK(!found, "the float output reports nothing");
}

}  // namespace oasr::kernels
