// layer_norm() for any instruction set: the template that the files cpu_*.cc instantiate.
#pragma once

#include <cstdint>

#include "kernels/norm/op.h"

namespace oasr::kernels {

template <class S>
class LayerNormLaneOf {
  using V = typename S::V;
  static constexpr int kStep = 16;  // partial sums of the canonical tree
  static constexpr int kVectors = kStep / S::kWidth;

 public:
  static void run(const LayerNormArgs& args, std::int64_t m0, std::int64_t m1) {
    for (std::int64_t m = m0; m < m1; ++m) {
      one_row(args, args.x + m * args.ldx, args.y + m * args.ldy);
    }
  }

 private:
  static void one_row(const LayerNormArgs& args, const float* x, float* y) {
    const auto d = static_cast<float>(args.d);
    V sum[kVectors];
    for (V& s : sum) s = S::set(0.0f);
    for_each(args.d, [&](std::int64_t i, int v, int) { sum[v] = S::add(sum[v], S::load(x + i)); },
             [&](std::int64_t i, int v, int n) { sum[v] = S::add(sum[v], S::load_first(x + i, n)); });
    const float mean_value = S::fold_sum(sum) / d;
    const V mean = S::set(mean_value);

    for (V& s : sum) s = S::set(0.0f);
    for_each(args.d,
             [&](std::int64_t i, int v, int) {
               const V centred = S::sub(S::load(x + i), mean);
               sum[v] = S::fma(centred, centred, sum[v]);
             },
             [&](std::int64_t i, int v, int n) {
               const V centred = S::keep_first(S::sub(S::load_first(x + i, n), mean), n);
               sum[v] = S::fma(centred, centred, sum[v]);
             });
    const float scale_value = 1.0f / __builtin_sqrtf(S::fold_sum(sum) / d + args.eps);
    const V scale = S::set(scale_value);

    for_each(args.d,
             [&](std::int64_t i, int, int) {
               const V normal = S::mul(S::sub(S::load(x + i), mean), scale);
               S::store(y + i, S::fma(normal, S::load(args.gamma + i), S::load(args.beta + i)));
             },
             [&](std::int64_t i, int, int n) {
               const V normal = S::mul(S::sub(S::load_first(x + i, n), mean), scale);
               const V result = S::fma(normal, S::load_first(args.gamma + i, n),
                                       S::load_first(args.beta + i, n));
               S::store_first(y + i, result, n);
             });
  }

  // Calls full(i, v, width) for whole vectors and part(i, v, n) for the last n elements; v is the
  // vector's place in a step of sixteen.
  template <class Full, class Part>
  [[gnu::always_inline]] static void for_each(std::int64_t d, Full full, Part part) {
    std::int64_t i = 0;
    for (; i + kStep <= d; i += kStep) {
      for (int v = 0; v < kVectors; ++v) full(i + v * S::kWidth, v, S::kWidth);
    }
    for (int v = 0; i < d; ++v, i += S::kWidth) {
      part(i, v, d - i < S::kWidth ? static_cast<int>(d - i) : S::kWidth);
    }
  }
};

}  // namespace oasr::kernels
