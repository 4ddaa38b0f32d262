#include "base/check.h"
#include "kernels/lane_choice.h"
#include "kernels/scaled_mm/cuda.h"
#include "kernels/scaled_mm/multiply.h"

namespace oasr::kernels {

const ScaledMMLane& scaled_mm_lane(Isa isa) { return choose_lane(scaled_mm_lanes(), isa); }

std::size_t scaled_mm_scratch(std::int64_t rows, std::int64_t k) {
  // Rows widened to s16, K padded (the matrix unit takes whole tiles of 16 rows), a widened panel, and
  // the sums of four panels.
  const std::int64_t tiles = (rows + 15) / 16 * 16;
  constexpr std::int64_t kDepth = PackedInt8Weight::kDepth;
  const std::int64_t depth = (k + kDepth - 1) / kDepth * kDepth;
  return static_cast<std::size_t>((tiles + PackedInt8Weight::kPanel) * depth) * sizeof(std::int16_t) +
         static_cast<std::size_t>(tiles * 4 * PackedInt8Weight::kPanel) * sizeof(std::int32_t);
}

BlockSplit block_split(std::int64_t m, std::int64_t panels, std::int64_t k, int threads, bool costly_rows) {
  const std::int64_t rows = std::min(m, block_rows(k));
  if (threads == 1) return {rows, panels};
  constexpr std::int64_t kGroup = 4;        // panels that a lane reads at once
  constexpr std::int64_t kLeast = 128'000;  // multiplications; below, an item is not worth a hand-out
  const auto groups = [](std::int64_t p) { return (p + kGroup - 1) / kGroup * kGroup; };
  const std::int64_t blocks = (m + rows - 1) / rows;
  // Items across for about four (or one, if each prepares its rows at a cost) for each thread.
  const std::int64_t wanted = (costly_rows ? 1 : 4) * threads;
  const std::int64_t across = std::max<std::int64_t>(1, (wanted + blocks - 1) / blocks);
  const std::int64_t least = kLeast / (rows * k * PackedInt8Weight::kPanel) + 1;
  return {rows, std::min(panels, groups(std::max((panels + across - 1) / across, least)))};
}

void scaled_mm_reserve(ExecContext& context, std::int64_t k) {
  if (context.gpu == nullptr) reserve_blocks<PackedInt8Weight>(context, k);
}

namespace {

// Where the context says.
template <class Args, class Output>
NotFinite run(ExecContext& context, const Args& args, const Output& out) {
  if (context.gpu == nullptr) return multiply(context, args, out);
  scaled_mm_cuda(*context.gpu, args, out);
  return {};
}

}  // namespace

void scaled_mm(ExecContext& context, const ScaledMMArgs& args, const FloatOutput& out) {
  CHECK(!run(context, args, out), "the float output reports nothing");
}

NotFinite scaled_mm_quant(ExecContext& context, const ScaledMMArgs& args, const Int8Output& out) {
  return run(context, args, out);
}

NotFinite scaled_mm_dynamic(ExecContext& context, const DynamicScaledMMArgs& args,
                            const FloatOutput& out) {
  return run(context, args, out);
}
NotFinite scaled_mm_dynamic(ExecContext& context, const DynamicScaledMMArgs& args,
                            const Int8Output& out) {
  return run(context, args, out);
}

NotFinite scaled_mm_static(ExecContext& context, const StaticScaledMMArgs& args, const FloatOutput& out) {
  return run(context, args, out);
}
NotFinite scaled_mm_static(ExecContext& context, const StaticScaledMMArgs& args, const Int8Output& out) {
  return run(context, args, out);
}

}  // namespace oasr::kernels
