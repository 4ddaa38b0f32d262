// The functions of op.h on a GPU, for activate.cc only: all of args is device memory.
#pragma once

#include "device/gpu.h"
#include "kernels/activate/op.h"

namespace oasr::kernels {

void activate_rows_cuda(Gpu& gpu, const ActivateRowsArgs& args);
void glu_cuda(Gpu& gpu, const GluArgs& args);

}  // namespace oasr::kernels
