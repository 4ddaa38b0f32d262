#include <cmath>

#include "kernels/activate/op.h"
#include "kernels/norm/op.h"

namespace oasr::kernels {
namespace {

constexpr int kLanes = 16;

// The canonical tree: sixteen partial sums, folded in halves.
float fold(float (&sum)[kLanes]) {
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) sum[i] += sum[i + width];
  }
  return sum[0];
}

}  // namespace

void layer_norm_reference(const LayerNormArgs& args) {
  const auto d = static_cast<float>(args.d);
  for (std::int64_t m = 0; m < args.m; ++m) {
    const float* x = args.x + m * args.ldx;
    float* y = args.y + m * args.ldy;
    float sum[kLanes] = {};
    for (std::int64_t i = 0; i < args.d; ++i) sum[i % kLanes] += x[i];
    const float mean = fold(sum) / d;

    float squares[kLanes] = {};
    for (std::int64_t i = 0; i < args.d; ++i) {
      const float centred = x[i] - mean;
      squares[i % kLanes] = std::fma(centred, centred, squares[i % kLanes]);
    }
    const float scale = 1.0f / std::sqrt(fold(squares) / d + args.eps);
    for (std::int64_t i = 0; i < args.d; ++i) {
      y[i] = std::fma((x[i] - mean) * scale, args.gamma[i], args.beta[i]);
    }
  }
  activate_rows_reference({.x = args.y, .ldx = args.ldy, .m = args.m, .d = args.d, .activation = args.activation});
}

}  // namespace oasr::kernels
