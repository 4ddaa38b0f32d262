// The GPUs of this machine, and which of them kernels were compiled for.
#pragma once

#include "base/result.h"
#include "device/gpu.h"

namespace oasr {

// Their number, or why there is none.
Result<int> count_gpus();
GpuInfo info_of(int index);
bool compiled_for(const GpuInfo& gpu);

}  // namespace oasr
