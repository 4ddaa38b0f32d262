#include <algorithm>

#include "kernels/activate/cuda.h"
#include "kernels/activate/op.h"
#include "kernels/lane_choice.h"

namespace oasr::kernels {
namespace {

// Calls run(args, m0, m1) for blocks of rows, on all threads.
template <class Args>
void by_rows(ExecContext& context, const Args& args, void (*run)(const Args&, std::int64_t, std::int64_t)) {
  constexpr std::int64_t kItem = 16'000;  // elements: below, an item is not worth a hand-out
  const std::int64_t rows = std::max<std::int64_t>(1, kItem / std::max<std::int64_t>(1, args.d));
  context.pool->parallel_for((args.m + rows - 1) / rows, [&](std::int64_t item, int) {
    run(args, item * rows, std::min(args.m, (item + 1) * rows));
  });
}

}  // namespace

const ActivateLane& activate_lane(Isa isa) { return choose_lane(activate_lanes(), isa); }

void activate_rows(ExecContext& context, const ActivateRowsArgs& args) {
  if (context.gpu != nullptr) return activate_rows_cuda(*context.gpu, args);
  if (runs_reference(context)) return activate_rows_reference(args);
  by_rows(context, args, activate_lane(context.isa).activate_rows);
}

void glu(ExecContext& context, const GluArgs& args) {
  if (context.gpu != nullptr) return glu_cuda(*context.gpu, args);
  if (runs_reference(context)) return glu_reference(args);
  for (std::int64_t m = 0; m < args.head_rows; ++m) std::copy_n(args.head + m * args.ld_head, args.d, args.y + m * args.ldy);
  GluArgs gates = args;
  gates.y += args.head_rows * args.ldy;
  gates.head_rows = 0;
  by_rows(context, gates, activate_lane(context.isa).glu);
}

}  // namespace oasr::kernels
