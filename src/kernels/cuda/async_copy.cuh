// cp.async: copies of 16 bytes from device to shared memory that a thread does not wait for.
#pragma once

namespace oasr::kernels::cuda {

// Both addresses are multiples of 16.
__device__ inline void copy_async(void* shared, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(shared))),
               "l"(from)
               : "memory");
}
// Ends a group of copies.
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most the last kGroups groups of this thread are under way; a barrier then makes them
// everyone's.
template <int kGroups>
__device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
}

}  // namespace oasr::kernels::cuda
