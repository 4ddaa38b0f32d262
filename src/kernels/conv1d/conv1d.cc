#include <vector>

#include "base/check.h"
#include "kernels/conv1d/op.h"

namespace oasr::kernels {

PackedWeight pack_conv1d(std::int64_t c_out, std::int64_t c_in, DType storage,
                         const PackedWeight::RowSource& rows) {
  std::vector<float> row(static_cast<std::size_t>(c_in * kConvTaps));
  return PackedWeight::pack(c_out, c_in * kConvTaps, storage, [&](std::int64_t n, std::span<float> out) {
    rows(n, row);
    for (std::int64_t c = 0; c < c_in; ++c) {
      for (std::int64_t tap = 0; tap < kConvTaps; ++tap) {
        out[static_cast<std::size_t>(tap * c_in + c)] = row[static_cast<std::size_t>(c * kConvTaps + tap)];
      }
    }
  });
}

void conv1d(ExecContext& context, const Conv1dArgs& args) {
  CHECK(args.frames >= 1 && (args.stride == 1 || args.stride == 2), "the geometry of a convolution");
  CHECK(args.weight->k() % kConvTaps == 0, "a weight of pack_conv1d");
  const std::int64_t channels = args.weight->k() / kConvTaps;
  const auto row_bytes = static_cast<std::size_t>(channels) * sizeof(float);
  clear(context.gpu, args.x, row_bytes);
  clear(context.gpu, args.x + (args.frames + 1) * channels, row_bytes);
  linear(context, {.x = args.x,
                   .ldx = args.stride * channels,
                   .m = conv1d_frames(args.frames, args.stride),
                   .weight = args.weight,
                   .bias = args.bias,
                   .activation = args.activation,
                   .residual = args.residual,
                   .ldr = args.ldr,
                   .y = args.y,
                   .ldy = args.ldy});
}

}  // namespace oasr::kernels
