// The register tile that every matrix product here is made of.
#pragma once

#include <cstdint>

namespace oasr::kernels {

// kRows rows × kPanels · kVectors vectors of accumulators. Each one is an fma chain over k in
// rising order, started by zero() or resumed by load() from what store() kept: the same bits
// however k is cut.
template <class S, int kRows, int kPanels, int kVectors>
class Tile {
  using V = typename S::V;
  static constexpr int kAcross = kPanels * kVectors;
  static constexpr std::int64_t kLine = 64;  // bytes of a cache line

 public:
  [[gnu::always_inline]] void zero() {
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 12
      for (int v = 0; v < kAcross; ++v) at_[r][v] = S::set(0.0f);
    }
  }
  [[gnu::always_inline]] void load(const float* from, std::int64_t stride) {
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 12
      for (int v = 0; v < kAcross; ++v) at_[r][v] = S::load(from + r * stride + v * S::kWidth);
    }
  }
  // Panels are panel_stride floats apart; by default they touch.
  [[gnu::always_inline]] void store(float* to, std::int64_t stride,
                                    std::int64_t panel_stride = kVectors * S::kWidth) const {
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 12
      for (int v = 0; v < kAcross; ++v) {
        const std::int64_t column = v / kVectors * panel_stride + v % kVectors * S::kWidth;
        S::store(to + r * stride + column, at_[r][v]);
      }
    }
  }
  [[gnu::always_inline]] void scale(V by) {
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 12
      for (int v = 0; v < kAcross; ++v) at_[r][v] = S::mul(at_[r][v], by);
    }
  }

  // at(·, v) = f(at(·, v), v)
  template <class F>
  [[gnu::always_inline]] void map(F f) {
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 12
      for (int v = 0; v < kAcross; ++v) at_[r][v] = f(at_[r][v], v);
    }
  }

  // at(r, ·) += x[r · ldx + k] · w(k, ·) for k = 0 … count - 1. Vector v of panel p of w(k) is at
  // w + p · panel_stride + k · k_stride + v · width. `ahead`, if given, is memory that is needed
  // next: a cache line of it is fetched with every k.
  template <class T, class... Ahead>
  [[gnu::always_inline]] void multiply(const float* x, std::int64_t ldx, const T* w,
                                       std::int64_t k_stride, std::int64_t panel_stride,
                                       std::int64_t count, Ahead... ahead) {
    for (std::int64_t k = 0; k < count; ++k) {
      (__builtin_prefetch(ahead + k * kLine, 0, 2), ...);
      V b[kAcross];
#pragma GCC unroll 12
      for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 12
        for (int v = 0; v < kVectors; ++v) {
          b[p * kVectors + v] = S::load(w + p * panel_stride + v * S::kWidth);
        }
      }
      w += k_stride;
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) {
        const V a = S::set(x[r * ldx + k]);
#pragma GCC unroll 12
        for (int v = 0; v < kAcross; ++v) at_[r][v] = S::fma(a, b[v], at_[r][v]);
      }
    }
  }

 private:
  V at_[kRows][kAcross];
};

// Calls f with an integral constant of `rows`, 1 <= rows <= kMost.
template <int N>
struct Rows {
  static constexpr int value = N;
};
template <int kMost, class F>
[[gnu::always_inline]] inline void with_rows(int rows, F f) {
  if constexpr (kMost > 1) {
    if (rows < kMost) return with_rows<kMost - 1>(rows, f);
  }
  f(Rows<kMost>{});
}

}  // namespace oasr::kernels
