#include <algorithm>

#include "kernels/activate/op.h"
#include "tensor/exact_math.h"

namespace oasr::kernels {

void activate_rows_reference(const ActivateRowsArgs& args) {
  for (std::int64_t m = 0; m < args.m; ++m) {
    float* x = args.x + m * args.ldx;
    for (std::int64_t i = 0; i < args.d; ++i) x[i] = activate(args.activation, x[i]);
  }
}

void glu_reference(const GluArgs& args) {
  for (std::int64_t m = 0; m < args.head_rows; ++m) std::copy_n(args.head + m * args.ld_head, args.d, args.y + m * args.ldy);
  for (std::int64_t m = 0; m < args.m; ++m) {
    const float* x = args.x + m * args.ldx;
    float* y = args.y + (args.head_rows + m) * args.ldy;
    for (std::int64_t i = 0; i < args.d; ++i) y[i] = x[i] * exact::sigmoid(x[args.d + i]);
  }
}

}  // namespace oasr::kernels
