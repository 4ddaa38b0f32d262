// The polynomials of exact_math.h over any vector type, so that every lane runs the same
// operations in the same order. For exact_math.cc and the kernels' lanes only.
//
// Ops is a lane's struct of static functions on its vector type V, each one IEEE operation per
// element: set, add, sub, mul, fma, min (a < b ? a : b), max (a > b ? a : b), and
//   add_exponent(p, t)           bits(p) + (bits(t) << 23)
//   zero_if_less(v, x, limit)    x < limit ? +0 : v
//   unless_at_most(v, x, limit, other)   x <= limit ? v : other (NaN gives other)
#pragma once

namespace oasr::exact {

inline constexpr float kLog2E = 0x1.715476p0f;
inline constexpr float kRound = 0x1.8p23f;      // adding it rounds to an integer, kept in the low bits
inline constexpr float kLn2High = 0x1.62e400p-1f;  // 15 bits: n · kLn2High is exact
inline constexpr float kLn2Low = 0x1.7f7d1cp-20f;
inline constexpr float kExpLeast = -0x1.5d589ep6f;    // just above -126 ln 2
inline constexpr float kExpGreatest = 0x1.62e42ep6f;  // just below 128 ln 2

// 2ⁿ eʳ, |r| <= ln 2 / 2, n in the low bits of t: minimax in eʳ = 1 + r + r² q(r), error 2⁻²⁸.
template <class Ops, class V>
[[gnu::always_inline]] inline V exp_scaled(V t, V r) {
  V p = Ops::set(0x1.6a2256p-10f);
  p = Ops::fma(p, r, Ops::set(0x1.123b04p-7f));
  p = Ops::fma(p, r, Ops::set(0x1.5558f8p-5f));
  p = Ops::fma(p, r, Ops::set(0x1.555490p-3f));
  p = Ops::fma(p, r, Ops::set(0x1.fffffcp-2f));
  p = Ops::fma(p, r, Ops::set(1.0f));
  p = Ops::fma(p, r, Ops::set(1.0f));
  return Ops::add_exponent(p, t);
}

template <class Ops, class V>
[[gnu::always_inline]] inline V exp(V x) {
  const V t = Ops::fma(x, Ops::set(kLog2E), Ops::set(kRound));
  const V n = Ops::sub(t, Ops::set(kRound));
  V r = Ops::fma(n, Ops::set(-kLn2High), x);
  r = Ops::fma(n, Ops::set(-kLn2Low), r);
  const V y = Ops::zero_if_less(exp_scaled<Ops>(t, r), x, Ops::set(kExpLeast));
  // x + infinity: infinity above the range, NaN for NaN.
  return Ops::unless_at_most(y, x, Ops::set(kExpGreatest), Ops::add(x, Ops::set(__builtin_inff())));
}

// With a = |x|: twice the upper tail, h(a) = 2 (1 - Φ(a)) = exp(a q(a) - a² / 2), where q is smooth
// (minimax, absolute error weighted by the tail), and x Φ(x) = max(x, 0) - (a / 2) h(a). The square
// is split into two floats, so that the exponential keeps its relative precision.
template <class Ops, class V>
[[gnu::always_inline]] inline V gelu(V x) {
  const V a = Ops::min(Ops::set(14.0f), Ops::max(x, Ops::sub(Ops::set(0.0f), x)));
  V q = Ops::set(-0x1.c9045ep-35f);
  q = Ops::fma(q, a, Ops::set(0x1.a9d59cp-29f));
  q = Ops::fma(q, a, Ops::set(-0x1.5509aap-24f));
  q = Ops::fma(q, a, Ops::set(0x1.361704p-20f));
  q = Ops::fma(q, a, Ops::set(-0x1.624a6ep-17f));
  q = Ops::fma(q, a, Ops::set(0x1.04079ap-14f));
  q = Ops::fma(q, a, Ops::set(-0x1.b59c8ap-13f));
  q = Ops::fma(q, a, Ops::set(0x1.3622c8p-17f));
  q = Ops::fma(q, a, Ops::set(0x1.3c0278p-8f));
  q = Ops::fma(q, a, Ops::set(-0x1.29e1fcp-5f));
  q = Ops::fma(q, a, Ops::set(0x1.741e66p-3f));
  q = Ops::fma(q, a, Ops::set(-0x1.988472p-1f));
  const V minus_half = Ops::mul(a, Ops::set(-0.5f));
  const V square = Ops::mul(minus_half, a);
  const V lost = Ops::fma(minus_half, a, Ops::sub(Ops::set(0.0f), square));
  const V rest = Ops::fma(q, a, lost);
  const V exponent = Ops::add(square, rest);
  const V t = Ops::fma(exponent, Ops::set(kLog2E), Ops::set(kRound));
  const V n = Ops::sub(t, Ops::set(kRound));
  V r = Ops::fma(n, Ops::set(-kLn2High), square);
  r = Ops::add(Ops::fma(n, Ops::set(-kLn2Low), r), rest);
  const V h = Ops::zero_if_less(exp_scaled<Ops>(t, r), exponent, Ops::set(kExpLeast));
  return Ops::fma(minus_half, h, Ops::max(Ops::set(0.0f), x));
}

}  // namespace oasr::exact
