// What the GPU kernels of linear() share: the product as it is launched, and the way from sums to outputs.
#pragma once

#include "kernels/cuda/async.cuh"
#include "kernels/cuda/exact.cuh"
#include "kernels/cuda/in_order.cuh"
#include "kernels/cuda/widen.cuh"
#include "kernels/linear/op.h"

namespace oasr::kernels::cuda {

struct LinearProblem {
  LinearArgs args;
  const void* weight;  // [panels][k][32] of the storage type
  std::int64_t n, k;
  bool x_vectors;  // rows of x can be read 16 bytes at a time
  bool y_vectors;  // bias, residual and y, four channels at a time
};

// The output of row m, channel n from its sum.
__device__ inline float linear_output(const LinearArgs& args, std::int64_t m, std::int64_t n, float sum) {
  if (args.bias != nullptr) sum = __fadd_rn(sum, args.bias[n]);
  const float value = cuda::activate(args.activation, sum);
  return args.residual == nullptr ? value : __fmaf_rn(args.alpha, value, args.residual[m * args.ldr + n]);
}

// Those of channels n … n + 3, which are written.
__device__ inline void write_four(const LinearProblem& p, std::int64_t m, std::int64_t n, float4 sums) {
  const LinearArgs& args = p.args;
  float v[4] = {sums.x, sums.y, sums.z, sums.w};
  float* y = args.y + m * args.ldy + n;
  if (!p.y_vectors || n + 4 > p.n) {
#pragma unroll 1
    for (int i = 0; i < 4 && n + i < p.n; ++i) {
      y[i] = linear_output(args, m, n + i, i == 0 ? sums.x : (i == 1 ? sums.y : (i == 2 ? sums.z : sums.w)));
    }
    return;
  }
  if (args.bias != nullptr) {
    const float4 b = *reinterpret_cast<const float4*>(args.bias + n);
    v[0] = __fadd_rn(v[0], b.x);
    v[1] = __fadd_rn(v[1], b.y);
    v[2] = __fadd_rn(v[2], b.z);
    v[3] = __fadd_rn(v[3], b.w);
  }
  activate_all(args.activation, v);
  if (args.residual != nullptr) {
    const float4 r = *reinterpret_cast<const float4*>(args.residual + m * args.ldr + n);
    v[0] = __fmaf_rn(args.alpha, v[0], r.x);
    v[1] = __fmaf_rn(args.alpha, v[1], r.y);
    v[2] = __fmaf_rn(args.alpha, v[2], r.z);
    v[3] = __fmaf_rn(args.alpha, v[3], r.w);
  }
  *reinterpret_cast<float4*>(y) = {v[0], v[1], v[2], v[3]};
}

}  // namespace oasr::kernels::cuda
