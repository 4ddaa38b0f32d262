#include "kernels/cuda/launch.cuh"
#include "kernels/mel/cuda.h"

namespace oasr::kernels {
namespace {

constexpr unsigned kWarp = 32, kMostWarps = 8;
constexpr unsigned kWarpMask = 0xffff'ffffu;
constexpr unsigned kSharedBytes = 32 * 1024;  // of a block, two buffers a warp
constexpr float kPreemphasis = 0.97f;

using Pair = fourier::Complex<float>;

// buffer[i] = x[i] · weights[i].
__device__ void window_frame(const MelFramesArgs& args, const float* x, unsigned lane, float* buffer) {
  for (unsigned i = lane; i < args.window; i += kWarp) buffer[i] = x[i] * args.window_weights[i];
}

// The same of the frame less its mean and 0.97 of the sample before. `other` is lost.
__device__ void emphasise_frame(const MelFramesArgs& args, const float* x, unsigned lane, float* buffer,
                                float* other) {
  for (unsigned i = lane; i < args.window; i += kWarp) other[i] = x[i] * args.scale;
  __syncwarp();
  float sum = 0.0f;
  if (lane < 4) {
#pragma unroll 4
    for (unsigned i = lane; i < args.window; i += 4) sum = sum + other[i];
  }
  const float s0 = __shfl_sync(kWarpMask, sum, 0), s1 = __shfl_sync(kWarpMask, sum, 1);
  const float s2 = __shfl_sync(kWarpMask, sum, 2), s3 = __shfl_sync(kWarpMask, sum, 3);
  const float mean = ((s0 + s1) + (s2 + s3)) / static_cast<float>(args.window);
  for (unsigned i = lane; i < args.window; i += kWarp) {
    const float centred = other[i] - mean, before = other[i == 0 ? 0 : i - 1] - mean;
    buffer[i] = (centred - before * kPreemphasis) * args.window_weights[i];
  }
}

template <unsigned Radix>
__device__ void run_pass(const Pair* in, Pair* out, const fourier::Pass& pass, unsigned lane,
                         const fourier::Twiddle* roots) {
  const unsigned count = pass.size / Radix * pass.stride;
  for (unsigned i = lane; i < count; i += kWarp) {
    const unsigned p = i / pass.stride;
    fourier::butterfly<Radix>(in, out, pass, p, i - p * pass.stride, roots);
  }
}

// The powers of the bins of the samples in `buffer`; they are in `other` afterwards, or in `buffer`: what is
// returned.
__device__ float* transform_frame(const MelFramesArgs& args, unsigned lane, float* buffer, float* other) {
  Pair* in = reinterpret_cast<Pair*>(buffer);
  Pair* out = reinterpret_cast<Pair*>(other);
  const unsigned half = args.transform / 2;
  fourier::Pass pass{.size = half, .stride = 1, .roots = args.transform};
  while (pass.size > 1) {
    const unsigned radix = fourier::radix_of(pass.size);
    if (radix == 4) run_pass<4>(in, out, pass, lane, args.roots);
    if (radix == 5) run_pass<5>(in, out, pass, lane, args.roots);
    if (radix == 2) run_pass<2>(in, out, pass, lane, args.roots);
    __syncwarp();
    Pair* swapped = in;
    in = out;
    out = swapped;
    pass.size /= radix;
    pass.stride *= radix;
  }
  float* power = reinterpret_cast<float*>(out);
  if (lane == 0) fourier::fold_ends(in, half, power);
  for (unsigned k = 1 + lane; k <= half / 2; k += kWarp) fourier::fold(in, half, k, args.roots, power);
  __syncwarp();
  return power;
}

// A lane has the filters lane, lane + 32, …
template <LogBase kLog>
__device__ void filter_frame(const MelFramesArgs& args, const float* power, std::int64_t frame,
                             unsigned lane) {
  float greatest = args.floor;
  for (unsigned n = lane; n < args.filters; n += kWarp) {
    const MelTables::Filter span = args.spans[n];
    float energy = 0.0f;
    for (unsigned i = 0; i < span.count; ++i) {
      energy = energy + power[span.first_bin + i] * args.filter_weights[span.first_weight + i];
    }
    greatest = energy > greatest ? energy : greatest;
    if (args.logs != nullptr) {
      args.logs[frame * args.filters + n] = log_of<kLog>(args.floor > energy ? args.floor : energy);
    }
  }
  if (args.greatest == nullptr) return;
  for (unsigned step = kWarp / 2; step > 0; step /= 2) {
    const float other = __shfl_xor_sync(kWarpMask, greatest, step);
    greatest = other > greatest ? other : greatest;
  }
  if (lane == 0) args.greatest[frame] = greatest;
}

// A warp, a frame. Warps share nothing, so those beyond the last frame leave.
template <bool kEmphasised, LogBase kLog>
__global__ void __launch_bounds__(kWarp* kMostWarps) mel_frames(MelFramesArgs args) {
  cuda::in_order();
  extern __shared__ float2 shared[];
  const unsigned warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const std::int64_t frame = std::int64_t{blockIdx.x} * (blockDim.x / kWarp) + warp;
  if (frame >= args.frames) return;
  float* buffer = reinterpret_cast<float*>(shared) + 2 * warp * args.transform;
  float* other = buffer + args.transform;
  const float* x = args.samples + frame * args.hop;
  if constexpr (kEmphasised) {
    emphasise_frame(args, x, lane, buffer, other);
  } else {
    window_frame(args, x, lane, buffer);
  }
  for (unsigned i = args.window + lane; i < args.transform; i += kWarp) buffer[i] = 0.0f;
  __syncwarp();
  const float* power = transform_frame(args, lane, buffer, other);
  filter_frame<kLog>(args, power, frame, lane);
}

template <bool kEmphasised, LogBase kLog>
void run(Gpu& gpu, const MelFramesArgs& args) {
  const unsigned bytes = 2 * args.transform * sizeof(float);  // of a warp
  unsigned warps = kSharedBytes / bytes;
  if (warps > kMostWarps) warps = kMostWarps;
  cuda::launch(gpu, "mel_frames", mel_frames<kEmphasised, kLog>, {.x = cuda::divide_up(args.frames, warps)},
               kWarp * warps, warps * bytes, args);
}

}  // namespace

void mel_frames_cuda(Gpu& gpu, const MelFramesArgs& args) {
  CHECK(args.transform <= kMostMelTransform && args.window <= args.transform,
        "a transform that shared memory holds");
  if (args.emphasised) {
    return args.log == LogBase::e ? run<true, LogBase::e>(gpu, args) : run<true, LogBase::ten>(gpu, args);
  }
  return args.log == LogBase::e ? run<false, LogBase::e>(gpu, args) : run<false, LogBase::ten>(gpu, args);
}

}  // namespace oasr::kernels
