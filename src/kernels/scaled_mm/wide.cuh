// The matrix instructions of sm_90a that read both operands from shared memory (wgmma), for
// scaled_mm/product.cuh. Compiled for another architecture the functions are empty, and scaled_mm_tile() does
// not ask for them.
#pragma once

#include <cstdint>

namespace oasr::kernels::cuda {

// A matrix of rows of kDepth bytes in shared memory, twisted as product.cuh has it; the first row starts at a
// multiple of 8 rows. k of its columns are skipped by adding k / 16.
template <int kDepth>
__device__ std::uint64_t wide_operand(unsigned address) {
  static_assert(kDepth == 128 || kDepth == 64);
  constexpr std::uint64_t kEightRows = 8 * kDepth / 16, kTwist = kDepth == 128 ? 1 : 2;
  return (address >> 4 & 0x3fff) | std::uint64_t{1} << 16 | kEightRows << 32 | kTwist << 62;
}

// Before the first multiply_wide() of a group: registers that hold sums have their values.
__device__ inline void wide_begin() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
__device__ inline void wide_commit() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}
// Waits until at most kGroups groups, the latest, are not done.
template <int kGroups>
__device__ void wide_wait() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kGroups) : "memory");
#endif
}
// What this thread's copies have put into shared memory is seen by multiply_wide(), after a barrier.
__device__ inline void wide_fence_copies() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// Four warps: adds the product of 64 rows of a and kN rows of w, 32 bytes of k deep. A thread's sums are
// those of mma.m16n8k32 for the 16 rows of its warp.
template <int kN>
__device__ void multiply_wide(int (&sums)[kN / 8][4], std::uint64_t a, std::uint64_t w);

#define OASR_FOUR(j) "+r"(sums[j][0]), "+r"(sums[j][1]), "+r"(sums[j][2]), "+r"(sums[j][3])

template <>
__device__ inline void multiply_wide<256>(int (&sums)[32][4], std::uint64_t a, std::uint64_t w) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n256k32.s32.s8.s8 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
      "%128, %129, p; }"
      : OASR_FOUR(0), OASR_FOUR(1), OASR_FOUR(2), OASR_FOUR(3), OASR_FOUR(4), OASR_FOUR(5), OASR_FOUR(6),
        OASR_FOUR(7), OASR_FOUR(8), OASR_FOUR(9), OASR_FOUR(10), OASR_FOUR(11), OASR_FOUR(12), OASR_FOUR(13),
        OASR_FOUR(14), OASR_FOUR(15), OASR_FOUR(16), OASR_FOUR(17), OASR_FOUR(18), OASR_FOUR(19),
        OASR_FOUR(20), OASR_FOUR(21), OASR_FOUR(22), OASR_FOUR(23), OASR_FOUR(24), OASR_FOUR(25),
        OASR_FOUR(26), OASR_FOUR(27), OASR_FOUR(28), OASR_FOUR(29), OASR_FOUR(30), OASR_FOUR(31)
      : "l"(a), "l"(w));
#endif
}

template <>
__device__ inline void multiply_wide<128>(int (&sums)[16][4], std::uint64_t a, std::uint64_t w) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, p; }"
      : OASR_FOUR(0), OASR_FOUR(1), OASR_FOUR(2), OASR_FOUR(3), OASR_FOUR(4), OASR_FOUR(5), OASR_FOUR(6),
        OASR_FOUR(7), OASR_FOUR(8), OASR_FOUR(9), OASR_FOUR(10), OASR_FOUR(11), OASR_FOUR(12), OASR_FOUR(13),
        OASR_FOUR(14), OASR_FOUR(15)
      : "l"(a), "l"(w));
#endif
}

#undef OASR_FOUR

}  // namespace oasr::kernels::cuda
