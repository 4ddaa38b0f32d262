#include "kernels/cuda/aligned.h"
#include "kernels/cuda/int8.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/quantize/cuda.h"

namespace oasr::kernels {
namespace {

// A thread keeps up to kHeld times four values of a row in registers, 32 · 2ⁿ threads share a row.
constexpr int kHeld = 4, kMostThreads = 1024, kBlock = 128;
constexpr std::int64_t kMostHeld = std::int64_t{kMostThreads} * kHeld * 4;

// The greatest of what `lanes` neighbouring threads, a multiple of 32, found; a block has one such group
// unless lanes is 32.
__device__ unsigned greatest(float amax, int lanes) {
  __shared__ unsigned of_warp[kMostThreads / 32];
  unsigned bits = cuda::warp_greatest(amax);
  if (lanes == 32) return bits;
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = bits;
  __syncthreads();
  const unsigned other = threadIdx.x % 32 < lanes / 32 ? of_warp[threadIdx.x % 32] : 0;
  return __reduce_max_sync(0xffff'ffffu, other);
}

struct Scale {
  float to_int8, scale;
  bool finite;
};
// By the bits of a row's greatest magnitude.
__device__ Scale scale_of(unsigned amax) {
  const float value = __uint_as_float(amax);
  if (!cuda::is_finite(value)) return {0.0f, __uint_as_float(0x7fc0'0000u), false};
  return {__fdiv_rn(kInt8Greatest, value), __fdiv_rn(value, kInt8Greatest), true};
}

// Rows whose elements are held in registers between the two passes: aligned, K <= kMostHeld.
__global__ void per_token_held(QuantizePerTokenArgs args, int lanes, std::int32_t* not_finite) {
  cuda::in_order();
  const std::int64_t row = std::int64_t{blockIdx.x} * (blockDim.x / lanes) + threadIdx.x / lanes;
  if (row >= args.m) return;  // whole warps
  const int lane = threadIdx.x % lanes, count = static_cast<int>(args.k / 4);
  const auto* x = reinterpret_cast<const float4*>(args.x + row * args.ldx);
  const auto* smooth = reinterpret_cast<const float4*>(args.smooth_inv);
  float4 held[kHeld];
#pragma unroll
  for (int j = 0; j < kHeld; ++j) {
    const int i = lane + j * lanes;
    held[j] = i < count ? x[i] : float4{};
  }
  float amax = kLeastAmax;
#pragma unroll
  for (int j = 0; j < kHeld; ++j) {
    const int i = lane + j * lanes;
    float4& v = held[j];
    if (smooth != nullptr && i < count) {
      const float4 s = smooth[i];
      v = {__fmul_rn(v.x, s.x), __fmul_rn(v.y, s.y), __fmul_rn(v.z, s.z), __fmul_rn(v.w, s.w)};
    }
    for (const float value : {v.x, v.y, v.z, v.w}) amax = cuda::greater_magnitude(amax, value);
  }
  const Scale s = scale_of(greatest(amax, lanes));
  auto* q = reinterpret_cast<unsigned*>(args.q + row * args.ldq);
#pragma unroll
  for (int j = 0; j < kHeld; ++j) {
    const int i = lane + j * lanes;
    const float4& v = held[j];
    const unsigned four = cuda::round_four(__fmul_rn(v.x, s.to_int8), __fmul_rn(v.y, s.to_int8),
                                           __fmul_rn(v.z, s.to_int8), __fmul_rn(v.w, s.to_int8));
    if (i < count) q[i] = s.finite ? four : 0;
  }
  if (lane == 0) {
    args.scale[row] = s.scale;
    if (!s.finite) cuda::report_row(not_finite, row);
  }
}

// Any rows, read twice; a block has one.
__global__ void per_token_any(QuantizePerTokenArgs args, std::int32_t* not_finite) {
  cuda::in_order();
  const std::int64_t row = blockIdx.x;
  const float* x = args.x + row * args.ldx;
  const auto smoothed = [&](std::int64_t i) {
    return args.smooth_inv == nullptr ? x[i] : __fmul_rn(x[i], args.smooth_inv[i]);
  };
  float amax = kLeastAmax;
#pragma unroll 4
  for (std::int64_t i = threadIdx.x; i < args.k; i += kBlock)
    amax = cuda::greater_magnitude(amax, smoothed(i));
  const Scale s = scale_of(greatest(amax, kBlock));
  std::int8_t* q = args.q + row * args.ldq;
#pragma unroll 4
  for (std::int64_t i = threadIdx.x; i < args.k; i += kBlock) {
    q[i] = s.finite ? cuda::to_int8(__fmul_rn(smoothed(i), s.to_int8)) : std::int8_t{0};
  }
  if (threadIdx.x == 0) {
    args.scale[row] = s.scale;
    if (!s.finite) cuda::report_row(not_finite, row);
  }
}

// Aligned rows, kHeld times four values a thread; the columns of a block start at blockIdx.y.
__global__ void static_aligned(QuantizeStaticArgs args, int lanes, std::int32_t* not_finite) {
  cuda::in_order();
  const std::int64_t row = std::int64_t{blockIdx.x} * (blockDim.x / lanes) + threadIdx.x / lanes;
  if (row >= args.m) return;
  const std::int64_t first = std::int64_t{blockIdx.y} * lanes * kHeld + threadIdx.x % lanes,
                     count = args.k / 4;
  const auto* x = reinterpret_cast<const float4*>(args.x + row * args.ldx);
  const auto* multiplier = reinterpret_cast<const float4*>(args.multiplier);
  auto* q = reinterpret_cast<unsigned*>(args.q + row * args.ldq);
  float4 held[kHeld], factors[kHeld];
#pragma unroll
  for (int j = 0; j < kHeld; ++j) {
    const std::int64_t i = first + j * lanes;
    held[j] = i < count ? x[i] : float4{};
    factors[j] = i < count ? multiplier[i] : float4{};
  }
  float amax = 0.0f;
  const auto scaled = [&](float value, float factor) {
    amax = cuda::greater_magnitude(amax, value);
    return cuda::is_finite(value) ? cuda::clamp_to_int8(__fmul_rn(value, factor)) : 0.0f;
  };
#pragma unroll
  for (int j = 0; j < kHeld; ++j) {
    const std::int64_t i = first + j * lanes;
    if (i >= count) break;
    const float4 v = held[j], f = factors[j];
    q[i] = cuda::round_four(scaled(v.x, f.x), scaled(v.y, f.y), scaled(v.z, f.z), scaled(v.w, f.w));
  }
  if (!cuda::is_finite(amax)) cuda::report_row(not_finite, row);
}

__global__ void static_any(QuantizeStaticArgs args, std::int32_t* not_finite) {
  cuda::in_order();
  const std::int64_t row = blockIdx.x;
  bool finite = true;
#pragma unroll 4
  for (std::int64_t i = threadIdx.x; i < args.k; i += kBlock) {
    const float x = args.x[row * args.ldx + i];
    const bool number = cuda::is_finite(x);
    finite = finite && number;
    args.q[row * args.ldq + i] = number ? cuda::to_int8(__fmul_rn(x, args.multiplier[i])) : std::int8_t{0};
  }
  if (!finite) cuda::report_row(not_finite, row);
}

// Threads a row: enough to hold it, or all that a block can have.
int lanes_for(std::int64_t k) {
  int lanes = 32;
  while (lanes < kMostThreads && std::int64_t{lanes} * kHeld * 4 < k) lanes *= 2;
  return lanes;
}

}  // namespace

void quantize_per_token_cuda(Gpu& gpu, const QuantizePerTokenArgs& args) {
  const bool held = args.k % 4 == 0 && args.k <= kMostHeld && cuda::aligned(args.x, args.ldx) &&
                    cuda::aligned(args.q, args.ldq, 4) && cuda::aligned(args.smooth_inv, 0);
  if (!held) {
    return cuda::launch(gpu, "quantize_per_token", per_token_any, {.x = args.m}, kBlock, 0, args,
                        gpu.not_finite_row());
  }
  const int lanes = lanes_for(args.k), threads = lanes == 32 ? kBlock : lanes;
  cuda::launch(gpu, "quantize_per_token", per_token_held, {.x = cuda::divide_up(args.m, threads / lanes)},
               static_cast<unsigned>(threads), 0, args, lanes, gpu.not_finite_row());
}

void quantize_static_cuda(Gpu& gpu, const QuantizeStaticArgs& args) {
  const bool aligned = args.k % 4 == 0 && cuda::aligned(args.x, args.ldx) &&
                       cuda::aligned(args.q, args.ldq, 4) && cuda::aligned(args.multiplier, 0);
  if (!aligned) {
    return cuda::launch(gpu, "quantize_static", static_any, {.x = args.m}, kBlock, 0, args,
                        gpu.not_finite_row());
  }
  const int lanes = lanes_for(args.k), threads = lanes < kBlock ? kBlock : lanes;
  const cuda::Grid grid{.x = cuda::divide_up(args.m, threads / lanes),
                        .y = cuda::divide_up(args.k, std::int64_t{lanes} * kHeld * 4)};
  cuda::launch(gpu, "quantize_static", static_aligned, grid, static_cast<unsigned>(threads), 0, args, lanes,
               gpu.not_finite_row());
}

}  // namespace oasr::kernels
