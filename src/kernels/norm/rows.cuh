// Rows that a block of threads normalises: their statistics with canonical sums (docs/numerics.md).
//
// A block has kRows rows and kThreads threads, kLanes of them a row. Staged rows lie in shared memory, where
// the 16 partial sums of each row are 16 threads' work; rows that do not fit there are read from global
// memory three times.
#pragma once

#include "kernels/cuda/async.cuh"
#include "kernels/cuda/exact.cuh"
#include "kernels/cuda/launch.cuh"

namespace oasr::kernels::cuda {

struct NormRows {
  static constexpr int kRows = 4, kThreads = 256, kLanes = kThreads / kRows;
  static constexpr int kBlocks = 6;  // of a multiprocessor, as registers go
  static constexpr int kPartials = 16;
  static constexpr int kDepth = 2;                        // pairs of loads in flight of a thread
  static constexpr std::int64_t kMostShared = 96 * 1024;  // what every architecture has

  // Floats from a staged row to the next: two rows that a warp sums lie in different banks.
  static constexpr std::int64_t stride(std::int64_t d) { return (d + 31) / 32 * 32 + 16; }
  static constexpr std::int64_t shared_bytes(std::int64_t d) {
    return kRows * stride(d) * static_cast<std::int64_t>(sizeof(float));
  }
  static bool fits(std::int64_t d) { return shared_bytes(d) <= kMostShared; }

  struct Statistics {
    float mean, scale;
  };
};

// The sum of the partial sums of 16 neighbouring lanes, in the order of the canonical tree.
__device__ inline float fold(float partial) {
  for (int width = NormRows::kPartials / 2; width > 0; width /= 2) {
    partial = __fadd_rn(partial, __shfl_xor_sync(0xffff'ffffu, partial, width));
  }
  return partial;
}

// Calls add(x[i]) for i = lane, lane + 16, … in rising order.
template <class Add>
__device__ void partial_sum(const float* x, int count, int lane, Add add) {
#pragma unroll 16
  for (int i = lane; i < count; i += NormRows::kPartials) add(x[i]);
}

// 1 / sqrt(variance + eps), every operation rounded.
__device__ inline float inverse_deviation(float variance, float eps) {
  return __frcp_rn(__fsqrt_rn(__fadd_rn(variance, eps)));
}

// By 16 neighbouring threads, the `lane`-th of them: of one row x of d values.
__device__ inline NormRows::Statistics row_statistics(const float* x, std::int64_t d, int lane, float eps) {
  const int count = static_cast<int>(d);
  float sum = 0.0f;
  partial_sum(x, count, lane, [&](float value) { sum = __fadd_rn(sum, value); });
  const float mean = __fdiv_rn(fold(sum), static_cast<float>(d));
  float squares = 0.0f;
  partial_sum(x, count, lane, [&](float value) {
    const float centred = __fsub_rn(value, mean);
    squares = __fmaf_rn(centred, centred, squares);
  });
  const float variance = __fdiv_rn(fold(squares), static_cast<float>(d));
  return {mean, inverse_deviation(variance, eps)};
}

__device__ inline float normalised(float x, NormRows::Statistics s, float gamma, float beta) {
  return __fmaf_rn(__fmul_rn(__fsub_rn(x, s.mean), s.scale), gamma, beta);
}
__device__ inline float4 normalised(float4 x, NormRows::Statistics s, float4 gamma, float4 beta) {
  return {normalised(x.x, s, gamma.x, beta.x), normalised(x.y, s, gamma.y, beta.y),
          normalised(x.z, s, gamma.z, beta.z), normalised(x.w, s, gamma.w, beta.w)};
}

// gamma and beta of a row: the thread's first of them in registers, before the row is there.
template <class V>
class NormFactors {
  static constexpr int kHeld = 1;

 public:
  __device__ NormFactors(const float* gamma, const float* beta, int count, int lane)
      : gamma_(reinterpret_cast<const V*>(gamma)), beta_(reinterpret_cast<const V*>(beta)), count_(count), lane_(lane) {}
  // Reads only what no kernel writes.
  __device__ void hold() {
#pragma unroll
    for (int j = 0; j < kHeld; ++j) {
      const int i = lane_ + j * NormRows::kLanes;
      if (i >= count_) continue;
      held_gamma_[j] = gamma_[i];
      held_beta_[j] = beta_[i];
    }
  }
  // Calls f(i, gamma, beta) for the thread's share of a row.
  template <class F>
  __device__ void each(const F& f) const {
#pragma unroll
    for (int j = 0; j < kHeld; ++j) {
      const int i = lane_ + j * NormRows::kLanes;
      if (i < count_) f(i, held_gamma_[j], held_beta_[j]);
    }
#pragma unroll 2
    for (int i = lane_ + kHeld * NormRows::kLanes; i < count_; i += NormRows::kLanes) f(i, gamma_[i], beta_[i]);
  }

 private:
  const V *gamma_, *beta_;
  int count_, lane_;
  V held_gamma_[kHeld], held_beta_[kHeld];
};

// Calls store(i, load(i)) for the thread's share of `count` elements of a row, several loads ahead.
template <class Load, class Store>
__device__ void stream_row(int count, int lane, Load load, Store store) {
  using Value = decltype(load(0));
  for (int first = lane; first < count; first += NormRows::kLanes * NormRows::kDepth) {
    Value values[NormRows::kDepth];
#pragma unroll
    for (int j = 0; j < NormRows::kDepth; ++j) {
      if (first + j * NormRows::kLanes < count) values[j] = load(first + j * NormRows::kLanes);
    }
#pragma unroll
    for (int j = 0; j < NormRows::kDepth; ++j) {
      if (first + j * NormRows::kLanes < count) store(first + j * NormRows::kLanes, values[j]);
    }
  }
}

// The thread's share of a row, to shared memory, beside whatever else runs; it waits for all of it.
__device__ inline void stage_row(const float4* x, int count, int lane, float4* staged) {
  for (int i = lane; i < count; i += NormRows::kLanes) copy_async_16(shared_address(staged + i), x + i);
  copy_async_commit();
  copy_async_wait<0>();
}
__device__ inline void stage_row(const float* x, int count, int lane, float* staged) {
  for (int i = lane; i < count; i += NormRows::kLanes) copy_async_4(shared_address(staged + i), x + i);
  copy_async_commit();
  copy_async_wait<0>();
}

// The type of one access: four floats where rows are aligned, else one.
template <bool kVector>
using Floats4 = std::conditional_t<kVector, float4, float>;

}  // namespace oasr::kernels::cuda
