#include "kernels/cuda/launch.cuh"
#include "kernels/depthwise_conv1d/cuda.h"

namespace oasr::kernels {
namespace {

// A warp takes 32 channels; a thread kFrames outputs of its channel that lie side by side in time, so that an
// input row is read once for all of them. A tap's weight is read once for kFrames products.
constexpr int kFrames = 8;
constexpr int kWarps = 4;

__global__ void __launch_bounds__(32 * kWarps)
    depthwise(DepthwiseConv1dArgs args, const float* weight, std::int64_t channels, int taps) {
  cuda::in_order();
  const std::int64_t channel = std::int64_t{blockIdx.y} * 32 + threadIdx.x % 32;
  const std::int64_t first = (std::int64_t{blockIdx.x} * kWarps + threadIdx.x / 32) * kFrames;
  if (channel >= channels || first >= args.frames) return;
  const int frames = args.frames - first < kFrames ? static_cast<int>(args.frames - first) : kFrames;
  const float* x = args.x + first * args.ldx + channel;
  float sum[kFrames] = {}, window[kFrames];  // window: the inputs of tap j, x[j … j + kFrames)
#pragma unroll
  for (int i = 0; i < kFrames; ++i) window[i] = i < frames ? x[i * args.ldx] : 0.0f;
  for (int tap = 0; tap < taps; ++tap) {
    const float w = weight[tap * channels + channel];
    // The last frame's next input; the rows end at frames + taps - 1.
    const float next = tap + 1 < taps ? x[(tap + frames) * args.ldx] : 0.0f;
#pragma unroll
    for (int i = 0; i < kFrames; ++i) sum[i] = __fmaf_rn(window[i], w, sum[i]);
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

}  // namespace

void depthwise_conv1d_cuda(Gpu& gpu, const DepthwiseConv1dArgs& args) {
  const std::int64_t channels = args.weight->channels();
  cuda::launch(gpu, "depthwise_conv1d", depthwise,
               {.x = cuda::divide_up(args.frames, kFrames * kWarps), .y = cuda::divide_up(channels, 32)},
               32 * kWarps, 0, args, args.weight->data(), channels, static_cast<int>(args.weight->taps()));
}

}  // namespace oasr::kernels
