// int8 convolutions on a GPU, for scaled_conv.cc only: all of args is device memory, the weight is placed.
// What is not finite goes to gpu.not_finite_row().
#pragma once

#include "device/gpu.h"
#include "kernels/scaled_conv/op.h"

namespace oasr::kernels {

void scaled_conv_cuda(Gpu& gpu, const ScaledConvArgs& args, const FloatOutput& out);
void scaled_conv_cuda(Gpu& gpu, const StaticScaledConvArgs& args, const FloatOutput& out);

}  // namespace oasr::kernels
