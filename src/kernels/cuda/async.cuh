// Copies from global to shared memory that run beside the arithmetic (cp.async).
#pragma once

#include <cstdint>

namespace oasr::kernels::cuda {

__device__ inline unsigned shared_address(const void* shared) {
  return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}

// 16 bytes, of which only the first `bytes` are read and the others become zero. Both addresses are multiples
// of 16. (Of a size that the compiler does not know it makes low bits of the address, so that a sanitizer sees a read
// of 16 bytes that starts too late: where whole chunks can be read, copy_async_16_if is without that.)
__device__ inline void copy_async_16(unsigned to, const void* from, int bytes = 16) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
// 16 bytes, all of them zeros if not `there`: then nothing is read.
__device__ inline void copy_async_16_if(unsigned to, const void* from, bool there) {
  asm volatile(
      "{ .reg .pred absent; setp.eq.s32 absent, %2, 0; cp.async.cg.shared.global [%0], [%1], 16, absent; }" ::"r"(to),
      "l"(from), "r"(static_cast<int>(there))
      : "memory");
}
// copy_async_16 by way of the first-level cache: for what several blocks of a multiprocessor read.
__device__ inline void copy_async_16_shared(unsigned to, const void* from, int bytes = 16) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
// The same with 4.
__device__ inline void copy_async_4(unsigned to, const void* from, int bytes = 4) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
// Ends a group of copies of this thread.
__device__ inline void copy_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most kGroups of this thread's groups, the latest, are on their way.
template <int kGroups>
__device__ void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
}

}  // namespace oasr::kernels::cuda
