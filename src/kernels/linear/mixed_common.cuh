// What the mixed precision kernels of linear() share: the product as it is launched, operands, the epilogue.
#pragma once

#include "kernels/cuda/int8.cuh"
#include "kernels/cuda/mixed.cuh"
#include "kernels/linear/cuda_common.cuh"

namespace oasr::kernels::cuda {

// A sum is cut into pieces of so many k, the last may be shorter. A piece is a chain of steps of 16 k that starts at
// zero; pieces are added in rising order, the first to zero. So any number of warps may share a sum.
inline constexpr int kMixedPiece = 128;

struct MixedProblem {
  LinearProblem of;
  std::int32_t* not_finite;  // the word of the layer
  std::int64_t first_row;    // number of row 0 in what is reported
  bool x_pairs;              // rows of x can be read 8 bytes at a time
};

// Operand b of one column at k, k + 1, k + 8 and k + 9, rounded; w: floats in shared memory, k `stride` apart.
template <class E>
__device__ void round_column(const float* w, int stride, unsigned& b0, unsigned& b1) {
  b0 = round_two<E>(w[0], w[stride]);
  b1 = round_two<E>(w[8 * stride], w[9 * stride]);
}

// The outputs of four neighbouring channels, from n on, of rows m, m + step, …
template <int kRows>
__device__ void write_rows(const MixedProblem& problem, std::int64_t m, int step, std::int64_t n,
                           const float4 (&sums)[kRows]) {
  const LinearProblem& p = problem.of;
  const LinearArgs& args = p.args;
  if (n >= p.n) return;
  const bool whole = p.y_vectors && n + 4 <= p.n;
  const auto four = [&](const float* from) {
    if (whole) return *reinterpret_cast<const float4*>(from);
    return float4{from[0], n + 1 < p.n ? from[1] : 0.0f, n + 2 < p.n ? from[2] : 0.0f,
                  n + 3 < p.n ? from[3] : 0.0f};
  };
  float4 residual[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const std::int64_t row = m + r * step;
    if (args.residual != nullptr && row < args.m) residual[r] = four(args.residual + row * args.ldr + n);
  }
  const float4 bias = args.bias != nullptr ? four(args.bias + n) : float4{};
  float v[4 * kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    float* at = v + 4 * r;
    at[0] = sums[r].x, at[1] = sums[r].y, at[2] = sums[r].z, at[3] = sums[r].w;
    const std::int64_t row = m + r * step;
    const bool finite = is_finite(at[0]) && is_finite(at[1]) && is_finite(at[2]) && is_finite(at[3]);
    if (!finite && row < args.m) report_row(problem.not_finite, problem.first_row + row);
    if (args.bias == nullptr) continue;
    at[0] = __fadd_rn(at[0], bias.x);
    at[1] = __fadd_rn(at[1], bias.y);
    at[2] = __fadd_rn(at[2], bias.z);
    at[3] = __fadd_rn(at[3], bias.w);
  }
  activate_all(args.activation, v);
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const std::int64_t row = m + r * step;
    if (row >= args.m) continue;
    float* at = v + 4 * r;
    if (args.residual != nullptr) {
      at[0] = __fmaf_rn(args.alpha, at[0], residual[r].x);
      at[1] = __fmaf_rn(args.alpha, at[1], residual[r].y);
      at[2] = __fmaf_rn(args.alpha, at[2], residual[r].z);
      at[3] = __fmaf_rn(args.alpha, at[3], residual[r].w);
    }
    float* y = args.y + row * args.ldy + n;
    if (whole) {
      *reinterpret_cast<float4*>(y) = {at[0], at[1], at[2], at[3]};
      continue;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (n + i < p.n) y[i] = at[i];
    }
  }
}

}  // namespace oasr::kernels::cuda
