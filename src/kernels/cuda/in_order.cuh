// Kernels of one queue, which may start early and still run one after the other.
#pragma once

namespace oasr::kernels::cuda {

// Waits until all kernels before this one are done and what they wrote can be seen; the kernel after it may take its
// place meanwhile. Every kernel calls it before it reads or writes memory, in all of its threads (tools/check_kernels.py).
// meanwhile(): what may be done before, as it reads only what no kernel of a queue writes: weights, passed arguments.
template <class Meanwhile>
__device__ void in_order(const Meanwhile& meanwhile) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  meanwhile();
  asm volatile("griddepcontrol.wait;" ::: "memory");
#else
  meanwhile();
#endif
}
__device__ inline void in_order() {
  in_order([] {});
}

}  // namespace oasr::kernels::cuda
