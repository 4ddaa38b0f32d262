// Kernels of one queue, which may start early and still run one after the other.
#pragma once

namespace oasr::kernels::cuda {

// Waits until all kernels before this one are done and what they wrote can be seen; the kernel after it may take its
// place meanwhile. Every kernel calls it before anything else, in all of its threads (tools/check_kernels.py).
__device__ inline void in_order() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace oasr::kernels::cuda
