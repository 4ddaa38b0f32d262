#include "kernels/depthwise_conv1d/lane.h"
#include "kernels/depthwise_conv1d/lanes.h"
#include "kernels/simd/scalar.h"

namespace oasr::kernels {

void depthwise_conv1d_scalar(const DepthwiseConv1dArgs& args, std::int64_t t0, std::int64_t t1) {
  DepthwiseConv1dLaneOf<scalar::Simd>::run(args, t0, t1);
}

}  // namespace oasr::kernels
