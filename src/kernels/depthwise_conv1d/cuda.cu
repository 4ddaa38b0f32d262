#include "kernels/cuda/async.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/depthwise_conv1d/cuda.h"

namespace oasr::kernels {
namespace {

constexpr int kChannels = 32, kWarps = 4;  // of a block
constexpr std::int64_t kMostShared = 48 << 10;

// Input rows and weights of a block in shared memory, kChannels numbers a row: all loads are under way at once.
template <int kFrames>
constexpr std::int64_t staged_bytes(std::int64_t taps) {
  return (kFrames * kWarps + 2 * taps - 1) * kChannels * static_cast<std::int64_t>(sizeof(float));
}

__device__ void stage(const float* from, std::int64_t ld, int rows, bool there, float* to) {
  if (!there) return;
  const int lane = threadIdx.x % kChannels;
  for (int row = threadIdx.x / kChannels; row < rows; row += kWarps) {
    cuda::copy_async_4(cuda::shared_address(to + row * kChannels + lane), from + row * ld + lane);
  }
}

// A warp takes kChannels channels; a thread kFrames outputs of its channel that lie side by side in time, so that an
// input row is read once for all of them, and a tap's weight once for kFrames products.
template <int kFrames, bool kStaged>
__global__ void __launch_bounds__(kChannels * kWarps)
    depthwise(DepthwiseConv1dArgs args, const float* weight, std::int64_t channels, int taps) {
  extern __shared__ float shared[];
  const int lane = threadIdx.x % kChannels, warp = threadIdx.x / kChannels;
  const std::int64_t first_channel = std::int64_t{blockIdx.y} * kChannels, channel = first_channel + lane;
  const std::int64_t block = std::int64_t{blockIdx.x} * kWarps * kFrames, first = block + warp * kFrames;
  const float* x = args.x + block * args.ldx + first_channel;
  const float* w = weight + first_channel;
  std::int64_t ldx = args.ldx, ldw = channels;
  float* weights = shared + (kWarps * kFrames + taps - 1) * kChannels;
  cuda::in_order([&] {
    if constexpr (kStaged) stage(w, ldw, taps, channel < channels, weights);
  });
  if constexpr (kStaged) {
    const int outputs = args.frames - block < kWarps * kFrames ? static_cast<int>(args.frames - block) : kWarps * kFrames;
    stage(x, ldx, outputs + taps - 1, channel < channels, shared);
    cuda::copy_async_commit();
    cuda::copy_async_wait<0>();
    __syncthreads();
    x = shared;
    w = weights;
    ldx = ldw = kChannels;
  }
  if (channel >= channels || first >= args.frames) return;
  const int frames = args.frames - first < kFrames ? static_cast<int>(args.frames - first) : kFrames;
  x += warp * kFrames * ldx + lane;
  w += lane;
  float sum[kFrames] = {}, window[kFrames];  // window: the inputs of tap j, x[j … j + kFrames)
#pragma unroll
  for (int i = 0; i < kFrames; ++i) window[i] = i < frames ? x[i * ldx] : 0.0f;
#pragma unroll 4
  for (int tap = 0; tap < taps; ++tap) {
    const float factor = w[tap * ldw];
    // The last frame's next input; the rows end at frames + taps - 1.
    const float next = tap + 1 < taps ? x[(tap + frames) * ldx] : 0.0f;
#pragma unroll
    for (int i = 0; i < kFrames; ++i) sum[i] = __fmaf_rn(window[i], factor, sum[i]);
#pragma unroll
    for (int i = 0; i + 1 < kFrames; ++i) window[i] = i + 1 == frames ? next : window[i + 1];
    if (frames == kFrames) window[kFrames - 1] = next;
  }
  float* y = args.y + first * args.ldy + channel;
#pragma unroll
  for (int i = 0; i < kFrames; ++i) {
    if (i >= frames) break;
    y[i * args.ldy] = args.bias != nullptr ? __fadd_rn(sum[i], args.bias[channel]) : sum[i];
  }
}

template <int kFrames, bool kStaged>
void run(Gpu& gpu, const DepthwiseConv1dArgs& args) {
  const std::int64_t channels = args.weight->channels(), taps = args.weight->taps();
  cuda::launch(gpu, "depthwise_conv1d", depthwise<kFrames, kStaged>,
               {.x = cuda::divide_up(args.frames, kFrames * kWarps), .y = cuda::divide_up(channels, kChannels)},
               kChannels * kWarps, kStaged ? static_cast<std::size_t>(staged_bytes<kFrames>(taps)) : 0, args,
               args.weight->data(), channels, static_cast<int>(taps));
}

}  // namespace

void depthwise_conv1d_cuda(Gpu& gpu, const DepthwiseConv1dArgs& args) {
  constexpr int kMany = 8, kFew = 2;  // frames of a thread: few, where there would be few blocks
  if (staged_bytes<kMany>(args.weight->taps()) > kMostShared) return run<kMany, false>(gpu, args);
  const std::int64_t blocks =
      cuda::divide_up(args.frames, kMany * kWarps) * cuda::divide_up(args.weight->channels(), kChannels);
  return blocks < 2 * gpu.info().multiprocessors ? run<kFew, true>(gpu, args) : run<kMany, true>(gpu, args);
}

}  // namespace oasr::kernels
