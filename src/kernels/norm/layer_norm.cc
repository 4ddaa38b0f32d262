#include <algorithm>

#include "kernels/activate/op.h"
#include "kernels/lane_choice.h"
#include "kernels/norm/cuda.h"
#include "kernels/norm/op.h"

namespace oasr::kernels {

const LayerNormLane& layer_norm_lane(Isa isa) { return choose_lane(layer_norm_lanes(), isa); }

void layer_norm(ExecContext& context, const LayerNormArgs& args) {
  if (context.gpu != nullptr) return layer_norm_cuda(*context.gpu, args);
  if (runs_reference(context)) return layer_norm_reference(args);
  const auto run = layer_norm_lane(context.isa).run;
  const auto activate = activate_lane(context.isa).activate_rows;
  const ActivateRowsArgs normed{.x = args.y, .ldx = args.ldy, .m = args.m, .d = args.d, .activation = args.activation};
  constexpr std::int64_t kItem = 32'000;  // elements: below, an item is not worth a hand-out
  const std::int64_t rows = std::max<std::int64_t>(1, kItem / args.d);
  context.pool->parallel_for((args.m + rows - 1) / rows, [&](std::int64_t item, int) {
    const std::int64_t first = item * rows, end = std::min(args.m, first + rows);
    run(args, first, end);
    if (args.activation != Activation::none) activate(normed, first, end);
  });
}

}  // namespace oasr::kernels
