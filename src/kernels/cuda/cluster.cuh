// Blocks of a cluster, which run at the same time and read each other's shared memory (compute capability 9.0 and
// above). Compiled for an older architecture the functions are empty, and nothing launches a kernel that calls them.
#pragma once

// A kernel whose blocks come in clusters of n.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define OASR_CLUSTERS_OF(n) __cluster_dims__(n)
#else
#define OASR_CLUSTERS_OF(n)
#endif

namespace oasr::kernels::cuda {

// The number of this block in its cluster.
__device__ inline unsigned cluster_rank() {
  unsigned rank = 0;
#if __CUDA_ARCH__ >= 900
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
  return rank;
}

// All threads of all blocks of the cluster: what they wrote before is seen by all after.
__device__ inline void cluster_barrier() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

// Four ints of block `rank`, at what is `address` in this block's own shared memory, a multiple of 16.
__device__ inline int4 load_of_cluster(unsigned address, unsigned rank) {
  int4 v{};
#if __CUDA_ARCH__ >= 900
  unsigned there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
  asm volatile("ld.shared::cluster.v4.s32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(there)
               : "memory");
#endif
  return v;
}

}  // namespace oasr::kernels::cuda
