#include <algorithm>
#include <vector>

#include "base/check.h"
#include "kernels/conv1d/op.h"
#include "kernels/rows/op.h"

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
  zero_padding(context, {args.x, args.frames + 2, channels, channels});
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

void zero_padding(ExecContext& context, Matrix padded) {
  CHECK(padded.rows >= 2 && padded.stride == padded.columns, "an input of a convolution with its padding");
  if (context.gpu == nullptr) {  // which the definition runs without threads
    std::fill_n(padded.row(0), padded.columns, 0.0f);
    std::fill_n(padded.row(padded.rows - 1), padded.columns, 0.0f);
    return;
  }
  constexpr std::int32_t kBoth[] = {kZeroRow, kZeroRow};
  const Matrix ends{padded.data, 2, padded.columns, (padded.rows - 1) * padded.stride};
  gather_rows(context, {nullptr, 0, padded.columns, padded.columns}, kBoth, ends);
}

}  // namespace oasr::kernels
