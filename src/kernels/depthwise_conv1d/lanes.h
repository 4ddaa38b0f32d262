// The lanes' entry points: for the tables in lanes_*.cc only.
#pragma once

#include "kernels/depthwise_conv1d/op.h"

namespace oasr::kernels {

// Compute output frames [t0, t1); one file and one set of compiler flags each.
void depthwise_conv1d_scalar(const DepthwiseConv1dArgs& args, std::int64_t t0, std::int64_t t1);
void depthwise_conv1d_avx2(const DepthwiseConv1dArgs& args, std::int64_t t0, std::int64_t t1);
void depthwise_conv1d_avx512(const DepthwiseConv1dArgs& args, std::int64_t t0, std::int64_t t1);

}  // namespace oasr::kernels
