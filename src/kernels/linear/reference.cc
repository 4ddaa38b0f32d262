#include <cmath>
#include <vector>

#include "kernels/linear/op.h"

namespace oasr::kernels {

void linear_reference(const LinearArgs& args) {
  const std::int64_t k = args.weight->k();
  std::vector<float> w(static_cast<std::size_t>(k));
  for (std::int64_t n = 0; n < args.weight->n(); ++n) {
    args.weight->unpack_row(n, w);
    for (std::int64_t m = 0; m < args.m; ++m) {
      float value = 0.0f;
      for (std::int64_t i = 0; i < k; ++i) {
        value = std::fma(args.x[m * args.ldx + i], w[static_cast<std::size_t>(i)], value);
      }
      if (args.bias != nullptr) value += args.bias[n];
      value = activate(args.activation, value);
      if (args.residual != nullptr) value = std::fma(args.alpha, value, args.residual[m * args.ldr + n]);
      args.y[m * args.ldy + n] = value;
    }
  }
}

}  // namespace oasr::kernels
