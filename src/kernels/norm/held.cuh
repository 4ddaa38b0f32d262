// Rows that threads normalise in their registers: 16 neighbouring threads share one, and each holds what one partial
// sum of the canonical tree takes (docs/numerics.md), so nothing is exchanged before the tree is folded.
#pragma once

#include "kernels/norm/rows.cuh"

namespace oasr::kernels::cuda {

struct HeldRows {
  static constexpr int kLanes = NormRows::kPartials, kThreads = 64, kRows = kThreads / kLanes;
  static constexpr int kMostHeld = 128;  // floats of a thread
  // Few rows wait for their sums, many for memory: longer rows are then better staged whole (NormRows).
  static constexpr std::int64_t kFewRows = 2048, kShort = 512;

  static bool take(std::int64_t m, std::int64_t d) {
    return d <= (m <= kFewRows ? std::int64_t{kLanes} * kMostHeld : kShort);
  }
  static std::size_t shared_bytes(std::int64_t d) { return 2 * static_cast<std::size_t>(d) * sizeof(float); }

  // Where the block's row of this thread begins, and what of it the thread holds: lane, lane + 16, …
  // A row behind the last is the last once more, so that whole warps sum; it is not written.
  std::int64_t row;
  int lane;
  bool present;

  __device__ explicit HeldRows(std::int64_t m) {
    const std::int64_t own = std::int64_t{blockIdx.x} * kRows + threadIdx.x / kLanes;
    lane = threadIdx.x % kLanes;
    present = own < m;
    row = present ? own : m - 1;
  }
  // Calls f(i, at) for the thread's elements `at`, its i-th, in rising order.
  template <int kHeld, class F>
  __device__ void each(int d, F f) const {
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
      const int at = lane + i * kLanes;
      if (at < d) f(i, at);
    }
  }
};

// gamma and beta, of d floats each, on their way to shared memory; the block waits for them where it needs them.
__device__ inline void stage_affine(const float* gamma, const float* beta, std::int64_t d, float* shared) {
  const int count = static_cast<int>(d / 4);
  for (int i = threadIdx.x; i < count; i += HeldRows::kThreads) {
    copy_async_16(shared_address(shared + 4 * i), gamma + 4 * i);
    copy_async_16(shared_address(shared + d + 4 * i), beta + 4 * i);
  }
  copy_async_commit();
}
__device__ inline void await_affine() {
  copy_async_wait<0>();
  __syncthreads();
}

template <int kHeld>
__device__ NormRows::Statistics held_statistics(const HeldRows& rows, const float (&x)[kHeld], int d, float eps) {
  return statistics_of(d, eps, [&](auto add) { rows.each<kHeld>(d, [&](int i, int) { add(x[i]); }); });
}

// Calls f with the number of floats that a thread holds of rows of d, as a constant.
template <class F>
void with_held(std::int64_t d, F f) {
  if (d <= 16 * 16) return f(std::integral_constant<int, 16>{});
  if (d <= 16 * 32) return f(std::integral_constant<int, 32>{});
  if (d <= 16 * 64) return f(std::integral_constant<int, 64>{});
  return f(std::integral_constant<int, HeldRows::kMostHeld>{});
}

}  // namespace oasr::kernels::cuda
