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
inline V exp_scaled(V t, V r) {
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
inline V exp(V x) {
  const V t = Ops::fma(x, Ops::set(kLog2E), Ops::set(kRound));
  const V n = Ops::sub(t, Ops::set(kRound));
  V r = Ops::fma(n, Ops::set(-kLn2High), x);
  r = Ops::fma(n, Ops::set(-kLn2Low), r);
  const V y = Ops::zero_if_less(exp_scaled<Ops>(t, r), x, Ops::set(kExpLeast));
  // x + infinity: infinity above the range, NaN for NaN.
  return Ops::unless_at_most(y, x, Ops::set(kExpGreatest), Ops::add(x, Ops::set(__builtin_inff())));
}

// With a = |x|: the upper tail h(a) = 1 - Φ(a) = exp(q(a) - a² / 2), where q is smooth (minimax,
// absolute error weighted by the tail), and x Φ(x) = max(x, 0) - a h(a). The square is split into
// two floats, so that the exponential keeps its relative precision.
template <class Ops, class V>
inline V gelu(V x) {
  const V a = Ops::min(Ops::set(14.0f), Ops::max(x, Ops::sub(Ops::set(0.0f), x)));
  V q = Ops::set(0x1.28aac4p-31f);
  q = Ops::fma(q, a, Ops::set(-0x1.d89ad4p-26f));
  q = Ops::fma(q, a, Ops::set(0x1.38fc00p-21f));
  q = Ops::fma(q, a, Ops::set(-0x1.c399aep-18f));
  q = Ops::fma(q, a, Ops::set(0x1.7ec322p-15f));
  q = Ops::fma(q, a, Ops::set(-0x1.562ff4p-13f));
  q = Ops::fma(q, a, Ops::set(-0x1.302384p-14f));
  q = Ops::fma(q, a, Ops::set(0x1.4209e2p-8f));
  q = Ops::fma(q, a, Ops::set(-0x1.2a6126p-5f));
  q = Ops::fma(q, a, Ops::set(0x1.742950p-3f));
  q = Ops::fma(q, a, Ops::set(-0x1.9884d2p-1f));
  q = Ops::fma(q, a, Ops::set(-0x1.62e42ep-1f));
  const V half = Ops::mul(a, Ops::set(-0.5f));
  const V square = Ops::mul(half, a);
  const V rest = Ops::add(q, Ops::fma(half, a, Ops::sub(Ops::set(0.0f), square)));
  const V exponent = Ops::add(square, rest);
  const V t = Ops::fma(exponent, Ops::set(kLog2E), Ops::set(kRound));
  const V n = Ops::sub(t, Ops::set(kRound));
  V r = Ops::fma(n, Ops::set(-kLn2High), square);
  r = Ops::add(Ops::fma(n, Ops::set(-kLn2Low), r), rest);
  const V h = Ops::zero_if_less(exp_scaled<Ops>(t, r), exponent, Ops::set(kExpLeast));
  return Ops::fma(half, Ops::add(h, h), Ops::max(Ops::set(0.0f), x));
}

}  // namespace oasr::exact
