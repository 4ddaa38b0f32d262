// layer_norm() on a GPU, for layer_norm.cc only: all of args is device memory.
#pragma once

#include "device/gpu.h"
#include "kernels/norm/op.h"

namespace oasr::kernels {

void layer_norm_cuda(Gpu& gpu, const LayerNormArgs& args);

}  // namespace oasr::kernels
