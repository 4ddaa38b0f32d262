#include <algorithm>
#include <vector>

#include "base/check.h"
#include "kernels/conv2d/cuda.h"
#include "kernels/conv2d/op.h"
#include "kernels/lane_choice.h"

namespace oasr::kernels {
namespace {

// Rows that are gathered at once: the blocks that the lanes of linear() cut anyway, more where they are short.
std::int64_t block_rows(std::int64_t k) {
  constexpr std::int64_t kFloats = 98'304, kStep = 48, kMost = 288;
  return std::clamp(kFloats / k / kStep * kStep, kStep, kMost);
}

std::size_t scratch_bytes(std::int64_t k) {
  return static_cast<std::size_t>(block_rows(k) * row_stride(k)) * sizeof(float);
}

}  // namespace

PackedWeight pack_conv2d(std::int64_t c_out, std::int64_t c_in, std::int64_t height, std::int64_t width,
                         DType storage, const PackedWeight::RowSource& rows) {
  const std::int64_t taps = height * width;
  std::vector<float> row(static_cast<std::size_t>(c_in * taps));
  return PackedWeight::pack(c_out, c_in * taps, storage, [&](std::int64_t n, std::span<float> out) {
    rows(n, row);
    for (std::int64_t c = 0; c < c_in; ++c) {
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        out[static_cast<std::size_t>(tap * c_in + c)] = row[static_cast<std::size_t>(c * taps + tap)];
      }
    }
  });
}

void conv2d(ExecContext& context, const Conv2dArgs& args) {
  const ConvGeometry& g = args.geometry;
  const std::int64_t k = args.weight->k(), m = g.rows(), stride = row_stride(k);
  CHECK(k == g.k(), "a weight of these taps and channels");
  if (context.gpu != nullptr) return conv2d_cuda(*context.gpu, args, context.arithmetic);
  if (runs_reference(context)) return conv2d_reference(args);
  const auto run = linear_lane(context.isa).run;
  const std::int64_t panels = (args.weight->n() + PackedWeight::kPanel - 1) / PackedWeight::kPanel;
  const std::int64_t block = block_rows(k);
  context.pool->parallel_for((m + block - 1) / block, [&](std::int64_t item, int thread) {
    const std::int64_t m0 = item * block, count = std::min(block, m - m0);
    auto* fields = reinterpret_cast<float*>(context.pool->scratch(thread, scratch_bytes(k)).data());
    for (std::int64_t r = 0; r < count; ++r) gather_field(g, args.x, m0 + r, fields + r * stride);
    run({.x = fields, .ldx = stride, .m = count, .weight = args.weight, .bias = args.bias,
         .activation = args.activation, .y = args.y + m0 * args.ldy, .ldy = args.ldy},
        0, count, 0, panels);
  });
}

void conv2d_reserve(ExecContext& context, std::int64_t k) {
  if (context.gpu != nullptr || runs_reference(context)) return;
  for (int thread = 0; thread < context.pool->threads(); ++thread) context.pool->scratch(thread, scratch_bytes(k));
}

}  // namespace oasr::kernels
