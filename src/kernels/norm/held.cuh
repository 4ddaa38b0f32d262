// Rows that a warp holds in its registers while it normalises them, of the widths that models have. Nothing but the warp
// itself is waited for: few rows take little more than their way through memory. Sums are canonical (docs/numerics.md).
//
// A row is kPieces pieces of 128 numbers, four of each in every lane. It passes through shared memory once, so that lane
// i also has the numbers i % 16, i % 16 + 16, …, which are a partial sum's; both halves of a warp compute all of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/norm/rows.cuh"

namespace oasr::kernels::cuda {

// kEarly: gamma and beta come before what is waited for, in registers that many or long rows have a better use for.
template <int kPieces, bool kEarly>
class HeldRow {
 public:
  static constexpr int kRows = 4, kThreads = 32 * kRows;  // of a block; a warp has a row
  // Blocks of a multiprocessor, as registers go: measured.
  static constexpr int kBlocks = !kEarly ? std::min(8, 32 / kPieces) : kPieces == 4 ? 5 : std::min(6, 24 / kPieces);
  using Shared = float4[kRows][32 * kPieces];

  float4 at[kPieces];  // numbers 4 · lane + {0 … 3} of each piece

  __device__ static std::int64_t number() { return std::int64_t{blockIdx.x} * kRows + threadIdx.x / 32; }
  __device__ static int lane() { return threadIdx.x % 32; }

  // Before the row is there: reads only what no kernel writes.
  __device__ void begin(const float* gamma, const float* beta) {
    if constexpr (kEarly) load_factors(gamma, beta);
  }
  __device__ static void load(const float* row, float4 (&to)[kPieces]) {
#pragma unroll
    for (int j = 0; j < kPieces; ++j) to[j] = reinterpret_cast<const float4*>(row)[lane() + 32 * j];
  }
  __device__ void store(float* row) const {
#pragma unroll
    for (int j = 0; j < kPieces; ++j) reinterpret_cast<float4*>(row)[lane() + 32 * j] = at[j];
  }
  __device__ void normalise(Shared& shared, const float* gamma, const float* beta, float eps) {
    const NormRows::Statistics s = statistics(shared[threadIdx.x / 32], eps);
    if constexpr (!kEarly) load_factors(gamma, beta);
#pragma unroll
    for (int j = 0; j < kPieces; ++j) at[j] = normalised(at[j], s, gamma_[j], beta_[j]);
  }

 private:
  static constexpr int kLinks = 128 * kPieces / NormRows::kPartials;  // of a partial sum
  static constexpr float kDim = 128 * kPieces;

  __device__ void load_factors(const float* gamma, const float* beta) {
    load(gamma, gamma_);
    load(beta, beta_);
  }
  // As row_statistics().
  __device__ NormRows::Statistics statistics(float4* staged, float eps) const {
    store(reinterpret_cast<float*>(staged));
    __syncwarp();
    const float* partial = reinterpret_cast<const float*>(staged) + lane() % NormRows::kPartials;
    float values[kLinks], sum = 0.0f, squares = 0.0f;
#pragma unroll
    for (int i = 0; i < kLinks; ++i) values[i] = partial[NormRows::kPartials * i];
#pragma unroll
    for (int i = 0; i < kLinks; ++i) sum = __fadd_rn(sum, values[i]);
    const float mean = __fdiv_rn(fold(sum), kDim);
#pragma unroll
    for (int i = 0; i < kLinks; ++i) {
      const float centred = __fsub_rn(values[i], mean);
      squares = __fmaf_rn(centred, centred, squares);
    }
    return {mean, inverse_deviation(__fdiv_rn(fold(squares), kDim), eps)};
  }

  float4 gamma_[kPieces], beta_[kPieces];
};

// Calls f with the type of the rows, if there is one for rows of d numbers that is worth it.
template <class F>
bool with_held_row(std::int64_t d, std::int64_t rows, const GpuInfo& gpu, const F& f) {
  const auto with = [&]<int kPieces>(std::integral_constant<int, kPieces>) {
    constexpr bool kLong = kPieces > 10;
    using Few = HeldRow<kPieces, !kLong>;
    if (rows <= std::int64_t{gpu.multiprocessors} * Few::kBlocks * Few::kRows) {  // all at once
      f(std::type_identity<Few>());
      return true;
    }
    if constexpr (!kLong) f(std::type_identity<HeldRow<kPieces, false>>());
    return !kLong;
  };
  switch (d) {
    case 256: return with(std::integral_constant<int, 2>());
    case 384: return with(std::integral_constant<int, 3>());
    case 512: return with(std::integral_constant<int, 4>());
    case 768: return with(std::integral_constant<int, 6>());
    case 1024: return with(std::integral_constant<int, 8>());
    case 1280: return with(std::integral_constant<int, 10>());
    case 2048: return with(std::integral_constant<int, 16>());
    default: return false;
  }
}

}  // namespace oasr::kernels::cuda
