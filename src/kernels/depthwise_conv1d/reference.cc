#include <cmath>

#include "kernels/depthwise_conv1d/op.h"

namespace oasr::kernels {

void depthwise_conv1d_reference(const DepthwiseConv1dArgs& args) {
  const std::int64_t channels = args.weight->channels();
  for (std::int64_t t = 0; t < args.frames; ++t) {
    for (std::int64_t c = 0; c < channels; ++c) {
      float sum = 0;
      for (std::int64_t tap = 0; tap < args.weight->taps(); ++tap) {
        sum = std::fma(args.x[(t + tap) * args.ldx + c], args.weight->data()[tap * channels + c], sum);
      }
      args.y[t * args.ldy + c] = args.bias == nullptr ? sum : sum + args.bias[c];
    }
  }
}

}  // namespace oasr::kernels
