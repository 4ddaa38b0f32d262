#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "kernels/depthwise_conv1d/cuda.h"
#include "kernels/depthwise_conv1d/op.h"
#include "kernels/lane_choice.h"

namespace oasr::kernels {

DepthwiseWeight DepthwiseWeight::pack(std::int64_t channels, std::int64_t taps, const RowSource& rows) {
  CHECK(channels > 0 && taps > 0, "the extents of a depthwise weight");
  DepthwiseWeight weight;
  weight.channels_ = channels;
  weight.taps_ = taps;
  weight.data_ = Memory(nullptr, static_cast<std::size_t>(channels * taps) * sizeof(float));
  auto* data = reinterpret_cast<float*>(weight.data_.data());
  std::vector<float> row(static_cast<std::size_t>(taps));
  for (std::int64_t c = 0; c < channels; ++c) {
    rows(c, row);
    for (std::int64_t tap = 0; tap < taps; ++tap) data[tap * channels + c] = row[static_cast<std::size_t>(tap)];
  }
  return weight;
}

void DepthwiseWeight::place(Gpu& gpu) {
  CHECK(!placed_, "a weight is placed once");
  Memory memory(&gpu, data_.size());
  gpu.upload(memory.data(), data_.data(), data_.size());
  data_ = std::move(memory);
  placed_ = true;
}

void DepthwiseWeight::unpack_row(std::int64_t c, std::span<float> out) const {
  CHECK(!placed_, "the taps of a weight on a GPU are read by its kernels");
  CHECK(c >= 0 && c < channels_ && static_cast<std::int64_t>(out.size()) == taps_, "a channel of the weight");
  for (std::int64_t tap = 0; tap < taps_; ++tap) out[static_cast<std::size_t>(tap)] = data()[tap * channels_ + c];
}

const DepthwiseConv1dLane& depthwise_conv1d_lane(Isa isa) { return choose_lane(depthwise_conv1d_lanes(), isa); }

void depthwise_conv1d(ExecContext& context, const DepthwiseConv1dArgs& args) {
  if (context.gpu != nullptr) return depthwise_conv1d_cuda(*context.gpu, args);
  if (runs_reference(context)) return depthwise_conv1d_reference(args);
  const auto run = depthwise_conv1d_lane(context.isa).run;
  constexpr std::int64_t kItem = 400'000;  // multiplications: below, an item is not worth a hand-out
  const std::int64_t frames =
      std::max<std::int64_t>(8, kItem / (args.weight->channels() * args.weight->taps()) / 8 * 8);
  context.pool->parallel_for((args.frames + frames - 1) / frames, [&](std::int64_t item, int) {
    run(args, item * frames, std::min(args.frames, (item + 1) * frames));
  });
}

}  // namespace oasr::kernels
