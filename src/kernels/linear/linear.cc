#include "kernels/linear/op.h"

namespace oasr::kernels {

void linear(ExecContext& context, const LinearArgs& args) {
  context.pool->parallel_for(args.m, [&](std::int64_t m, int) {
    LinearArgs row = args;
    row.m = 1;
    row.x += m * args.ldx;
    row.y += m * args.ldy;
    if (args.residual != nullptr) row.residual += m * args.ldr;
    linear_reference(row);
  });
}

}  // namespace oasr::kernels
