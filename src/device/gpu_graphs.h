// OASR_GPU_GRAPHS, which holds for all GPUs.
#pragma once

#include "base/result.h"

namespace oasr {

// False when OASR_GPU_GRAPHS=0: kernels start one by one, not as CUDA graphs. An error for another value than 0 and 1,
// on machines without a GPU too.
Result<bool> gpu_graphs();

}  // namespace oasr
