#include <algorithm>

#include "kernels/lane_choice.h"
#include "kernels/linear/cuda.h"
#include "kernels/linear/op.h"

namespace oasr::kernels {
namespace {

// How a product is cut into items: big enough to hide the hand-out, small enough that the last
// items of a loop, or a thread that lost its core, delay the others little.
struct Split {
  std::int64_t rows;    // of an item
  std::int64_t panels;  // of an item
};

Split split(std::int64_t m, std::int64_t k, std::int64_t panels, int threads) {
  if (threads == 1) return {m, panels};
  constexpr std::int64_t kRows = 96;             // the lanes' block, at most
  constexpr std::int64_t kItem = 4'000'000;      // multiplications, about 0.1 ms
  constexpr std::int64_t kLeast = 64'000;        // below, an item is not worth a hand-out
  constexpr std::int64_t kGroup = 4;             // panels that a lane reads at once
  const auto groups = [](std::int64_t p) { return (p + kGroup - 1) / kGroup * kGroup; };
  // Blocks of about equally many rows, whole tiles of any lane: a last block of a few rows would read all
  // weights for little.
  constexpr std::int64_t kTile = 12;
  const std::int64_t blocks = (m + kRows - 1) / kRows;
  const std::int64_t rows = m <= kRows ? m : (m + blocks * kTile - 1) / (blocks * kTile) * kTile;
  const std::int64_t panel_work = rows * k * PackedWeight::kPanel;
  if (m > kRows) return {rows, std::min(panels, groups(std::max(std::int64_t{1}, kItem / panel_work)))};
  const std::int64_t even = (panels + 4 * threads - 1) / (4 * threads);
  return {m, std::min(panels, groups(std::max({even, kLeast / panel_work, std::int64_t{1}})))};
}

}  // namespace

const LinearLane& linear_lane(Isa isa) { return choose_lane(linear_lanes(), isa); }

void linear(ExecContext& context, const LinearArgs& args) {
  if (context.gpu != nullptr) return linear_cuda(*context.gpu, args, context.arithmetic);
  if (runs_reference(context)) return linear_reference(args);
  const auto run = linear_lane(context.isa).run;
  const std::int64_t panels = (args.weight->n() + PackedWeight::kPanel - 1) / PackedWeight::kPanel;
  const Split item = split(args.m, args.weight->k(), panels, context.pool->threads());
  if (item.rows == args.m && item.panels == panels) return run(args, 0, args.m, 0, panels);
  const std::int64_t across = (panels + item.panels - 1) / item.panels;
  const std::int64_t down = (args.m + item.rows - 1) / item.rows;
  context.pool->parallel_for(across * down, [&](std::int64_t i, int) {
    const std::int64_t m0 = i / across * item.rows, p0 = i % across * item.panels;
    run(args, m0, std::min(args.m, m0 + item.rows), p0, std::min(panels, p0 + item.panels));
  });
}

}  // namespace oasr::kernels
