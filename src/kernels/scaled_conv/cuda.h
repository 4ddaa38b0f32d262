// int8 convolutions on a GPU, for scaled_conv.cc only: all of args is device memory, the weight is placed.
// What is not finite goes to gpu.not_finite_row(). The receptive fields are gathered into rows, and the backend of
// scaled_mm/cuda.h multiplies those.
#pragma once

#include "device/gpu.h"
#include "kernels/scaled_conv/op.h"
#include "kernels/scaled_mm/backend.h"

namespace oasr::kernels {

void scaled_conv_cuda(Gpu& gpu, const ScaledConvArgs& args, const FloatOutput& out,
                      ScaledMMBackend backend = ScaledMMBackend::native);
void scaled_conv_cuda(Gpu& gpu, const StaticScaledConvArgs& args, const FloatOutput& out,
                      ScaledMMBackend backend = ScaledMMBackend::native);

}  // namespace oasr::kernels
