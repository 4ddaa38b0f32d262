// The quantize ops for any instruction set: the templates that the files cpu_*.cc instantiate.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/norm/lane.h"
#include "kernels/quantize/norm.h"

namespace oasr::kernels {

// Pieces that the epilogues of int8 products share. S: vectors_*.h.
template <class S>
struct Int8Steps {
  using V = typename S::V;
  static constexpr std::int32_t kInfinityBits = 0x7F800000;

  static int count(std::int64_t left) {
    return left < S::kWidth ? static_cast<int>(left) : S::kWidth;
  }
  static V clamp(V v) {
    return S::max(S::min(v, S::set(kInt8Greatest)), S::set(-kInt8Greatest));
  }

  // q(k) = clamp(rint(x(k) · multiplier(k))) for finite x; the greatest magnitudes so far.
  [[gnu::always_inline]] static V round_row(const float* x, const float* multiplier, std::int64_t k,
                                            std::int8_t* q, V most) {
    std::int64_t i = 0;
    for (; i + S::kWidth <= k; i += S::kWidth) {
      const V v = S::load(x + i);
      most = S::greater_magnitude(most, v);
      S::round_first(q + i, clamp(S::mul(v, S::load(multiplier + i))), S::kWidth);
    }
    if (i < k) {
      const int n = count(k - i);
      const V v = S::load_first(x + i, n);
      most = S::greater_magnitude(most, v);
      S::round_first(q + i, clamp(S::mul(v, S::load_first(multiplier + i, n))), n);
    }
    return most;
  }
  static bool finite(V most) { return S::greatest_magnitude(most) < kInfinityBits; }

  // q(k) = 0 where x is not finite; whether all x are.
  static bool zero_not_finite(const float* x, std::int64_t k, std::int8_t* q) {
    bool all = true;
    for (std::int64_t i = 0; i < k; ++i) {
      if (x[i] - x[i] == 0.0f) continue;
      all = false;
      q[i] = 0;
    }
    return all;
  }

  // One row of quantize_per_token; whether it is finite.
  static bool token_row(const float* x, const float* smooth_inv, std::int64_t k, std::int8_t* q,
                        float* scale) {
    return smooth_inv == nullptr
               ? token_row(k, q, scale, [&](std::int64_t i) { return S::load(x + i); },
                           [&](std::int64_t i, int n) { return S::load_first(x + i, n); })
               : token_row(k, q, scale,
                           [&](std::int64_t i) { return S::mul(S::load(x + i), S::load(smooth_inv + i)); },
                           [&](std::int64_t i, int n) {
                             return S::mul(S::load_first(x + i, n), S::load_first(smooth_inv + i, n));
                           });
  }

 private:
  template <class Full, class Part>
  [[gnu::always_inline]] static bool token_row(std::int64_t k, std::int8_t* q, float* scale, Full full,
                                               Part part) {
    constexpr std::int64_t kTwo = 2 * S::kWidth;
    V most = S::set(kLeastAmax), other = most;
    std::int64_t i = 0;
    for (; i + kTwo <= k; i += kTwo) {
      most = S::greater_magnitude(most, full(i));
      other = S::greater_magnitude(other, full(i + S::kWidth));
    }
    for (; i < k; i += S::kWidth) most = S::greater_magnitude(most, part(i, count(k - i)));
    const std::int32_t bits = S::greatest_magnitude(S::greater_magnitude(most, other));
    if (bits >= kInfinityBits) {
      std::memset(q, 0, static_cast<std::size_t>(k));
      *scale = __builtin_nanf("");
      return false;
    }
    float amax = 0;
    std::memcpy(&amax, &bits, sizeof amax);
    const V to_int8 = S::set(kInt8Greatest / amax);
    for (i = 0; i + S::kWidth <= k; i += S::kWidth) {
      S::round_first(q + i, clamp(S::mul(full(i), to_int8)), S::kWidth);
    }
    if (i < k) {
      const int n = count(k - i);
      S::round_first(q + i, clamp(S::mul(part(i, n), to_int8)), n);
    }
    *scale = amax / kInt8Greatest;
    return true;
  }
};

template <class S>
struct QuantizeLaneOf {
  using Steps = Int8Steps<S>;

  static NotFinite per_token(const QuantizePerTokenArgs& args, std::int64_t m0, std::int64_t m1) {
    NotFinite first;
    for (std::int64_t m = m0; m < m1; ++m) {
      const bool finite = Steps::token_row(args.x + m * args.ldx, args.smooth_inv, args.k,
                                           args.q + m * args.ldq, args.scale + m);
      if (!finite) first.merge({m});
    }
    return first;
  }

  static NotFinite fixed(const QuantizeStaticArgs& args, std::int64_t m0, std::int64_t m1) {
    NotFinite first;
    for (std::int64_t m = m0; m < m1; ++m) {
      const float* x = args.x + m * args.ldx;
      std::int8_t* q = args.q + m * args.ldq;
      if (Steps::finite(Steps::round_row(x, args.multiplier, args.k, q, S::set(0.0f)))) continue;
      Steps::zero_not_finite(x, args.k, q);
      first.merge({m});
    }
    return first;
  }

  static NotFinite layer_norm(const LayerNormQuantArgs& args, std::int64_t m0, std::int64_t m1,
                              float* normal) {
    NotFinite first;
    for (std::int64_t m = m0; m < m1; ++m) {
      const float* x = args.x + m * args.ldx;
      if (args.addend != nullptr) {
        add(x, args.addend + m * args.ld_addend, args.addend_scale, args.d, args.sum + m * args.ld_sum);
        x = args.sum + m * args.ld_sum;
      }
      LayerNormLaneOf<S>::run({.x = x, .ldx = args.d, .m = 1, .d = args.d, .gamma = args.gamma,
                               .beta = args.beta, .eps = args.eps, .y = normal, .ldy = args.d},
                              0, 1);
      const bool finite =
          Steps::token_row(normal, nullptr, args.d, args.q + m * args.ldq, args.scale + m);
      if (!finite) first.merge({m});
    }
    return first;
  }

 private:
  static void add(const float* x, const float* addend, float scale, std::int64_t d, float* sum) {
    for (std::int64_t i = 0; i < d; i += S::kWidth) {
      const int n = Steps::count(d - i);
      const auto scaled = S::mul(S::set(scale), S::load_first(addend + i, n));
      S::store_first(sum + i, S::add(S::load_first(x + i, n), scaled), n);
    }
  }
};

}  // namespace oasr::kernels
