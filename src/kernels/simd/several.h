// Several vectors side by side as one: long chains of operations (polynomials) of independent
// vectors interleave, where one chain alone would wait for its own latency.
#pragma once

namespace oasr::kernels {

// The operations that exact_poly.h needs, on N vectors of S.
template <class S, int N>
struct Several {
  struct V {
    typename S::V at[N];
  };
  static constexpr int kWidth = N * S::kWidth;

  [[gnu::always_inline]] static V set(float a) { return each([&](int) { return S::set(a); }); }
  [[gnu::always_inline]] static V load(const float* p) { return each([&](int i) { return S::load(p + i * S::kWidth); }); }
  [[gnu::always_inline]] static void store(float* p, const V& v) {
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) S::store(p + i * S::kWidth, v.at[i]);
  }
  [[gnu::always_inline]] static V add(V a, V b) { return each([&](int i) { return S::add(a.at[i], b.at[i]); }); }
  [[gnu::always_inline]] static V sub(V a, V b) { return each([&](int i) { return S::sub(a.at[i], b.at[i]); }); }
  [[gnu::always_inline]] static V mul(V a, V b) { return each([&](int i) { return S::mul(a.at[i], b.at[i]); }); }
  [[gnu::always_inline]] static V div(V a, V b) { return each([&](int i) { return S::div(a.at[i], b.at[i]); }); }
  [[gnu::always_inline]] static V fma(V a, V b, V c) {
    return each([&](int i) { return S::fma(a.at[i], b.at[i], c.at[i]); });
  }
  [[gnu::always_inline]] static V min(V a, V b) { return each([&](int i) { return S::min(a.at[i], b.at[i]); }); }
  [[gnu::always_inline]] static V max(V a, V b) { return each([&](int i) { return S::max(a.at[i], b.at[i]); }); }
  [[gnu::always_inline]] static V abs(V a) { return each([&](int i) { return S::abs(a.at[i]); }); }
  [[gnu::always_inline]] static V add_exponent(V p, V t) {
    return each([&](int i) { return S::add_exponent(p.at[i], t.at[i]); });
  }
  [[gnu::always_inline]] static V zero_if_less(V v, V x, V limit) {
    return each([&](int i) { return S::zero_if_less(v.at[i], x.at[i], limit.at[i]); });
  }
  [[gnu::always_inline]] static V unless_at_most(V v, V x, V limit, V other) {
    return each([&](int i) { return S::unless_at_most(v.at[i], x.at[i], limit.at[i], other.at[i]); });
  }

 private:
  template <class F>
  [[gnu::always_inline]] static V each(F f) {
    V result;
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) result.at[i] = f(i);
    return result;
  }
};

}  // namespace oasr::kernels
