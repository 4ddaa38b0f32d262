// depthwise_conv1d() for any instruction set: the template that the files cpu_*.cc instantiate.
#pragma once

#include <cstdint>

#include "kernels/depthwise_conv1d/op.h"
#include "kernels/simd/tile.h"

namespace oasr::kernels {

template <class S>
class DepthwiseConv1dLaneOf {
  using V = typename S::V;
  static constexpr int kFrames = 8;  // chains that hide the latency of fma

 public:
  static void run(const DepthwiseConv1dArgs& args, std::int64_t t0, std::int64_t t1) {
    for (std::int64_t t = t0; t < t1; t += kFrames) {
      const int frames = static_cast<int>(t1 - t < kFrames ? t1 - t : kFrames);
      with_rows<kFrames>(frames, [&](auto r) { some_frames<r.value>(args, t); });
    }
  }

 private:
  template <int kRows>
  static void some_frames(const DepthwiseConv1dArgs& args, std::int64_t t) {
    const std::int64_t channels = args.weight->channels();
    std::int64_t c = 0;
    for (; c + S::kWidth <= channels; c += S::kWidth) {
      columns<kRows>(args, t, c, [](const float* p) { return S::load(p); }, [](float* p, V v) { S::store(p, v); });
    }
    if (c == channels) return;
    const int n = static_cast<int>(channels - c);
    columns<kRows>(args, t, c, [n](const float* p) { return S::load_first(p, n); },
                   [n](float* p, V v) { S::store_first(p, v, n); });
  }

  // One vector of channels, kRows frames.
  template <int kRows, class Load, class Store>
  [[gnu::always_inline]] static void columns(const DepthwiseConv1dArgs& args, std::int64_t t, std::int64_t c,
                                             Load load, Store store) {
    const std::int64_t channels = args.weight->channels(), taps = args.weight->taps();
    const float* x = args.x + t * args.ldx + c;
    const float* w = args.weight->data() + c;
    V sum[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) sum[r] = S::set(0.0f);
    for (std::int64_t tap = 0; tap < taps; ++tap, x += args.ldx, w += channels) {
      const V weight = load(w);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) sum[r] = S::fma(load(x + r * args.ldx), weight, sum[r]);
    }
    if (args.bias != nullptr) {
      const V bias = load(args.bias + c);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) sum[r] = S::add(sum[r], bias);
    }
    float* y = args.y + t * args.ldy + c;
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) store(y + r * args.ldy, sum[r]);
  }
};

}  // namespace oasr::kernels
