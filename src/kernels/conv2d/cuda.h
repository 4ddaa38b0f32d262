// conv2d() on a GPU, for conv2d.cc only: all of args is device memory, the weight is placed.
#pragma once

#include "device/arithmetic.h"
#include "device/gpu.h"
#include "kernels/conv2d/op.h"

namespace oasr::kernels {

void conv2d_cuda(Gpu& gpu, const Conv2dArgs& args, Arithmetic arithmetic);

}  // namespace oasr::kernels
