#include "kernels/depthwise_conv1d/lane.h"
#include "kernels/depthwise_conv1d/lanes.h"
#include "kernels/simd/avx512.h"

namespace oasr::kernels {

void depthwise_conv1d_avx512(const DepthwiseConv1dArgs& args, std::int64_t t0, std::int64_t t1) {
  DepthwiseConv1dLaneOf<avx512::Simd>::run(args, t0, t1);
}

}  // namespace oasr::kernels
