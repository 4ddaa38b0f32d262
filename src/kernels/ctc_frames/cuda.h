// The function of op.h on a GPU, for ctc_frames.cc only: all but the tokens before a piece is device memory.
#pragma once

#include "device/gpu.h"
#include "kernels/ctc_frames/op.h"

namespace oasr::kernels {

void ctc_frames_cuda(Gpu& gpu, const CtcFramesArgs& args);

}  // namespace oasr::kernels
