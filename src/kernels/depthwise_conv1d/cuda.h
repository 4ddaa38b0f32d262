// depthwise_conv1d() on a GPU, for depthwise_conv1d.cc only: all of args is device memory.
#pragma once

#include "device/gpu.h"
#include "kernels/depthwise_conv1d/op.h"

namespace oasr::kernels {

void depthwise_conv1d_cuda(Gpu& gpu, const DepthwiseConv1dArgs& args);

}  // namespace oasr::kernels
