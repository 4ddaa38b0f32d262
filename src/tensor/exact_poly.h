// The polynomials of exact_math.h over any vector type, so that every lane runs the same
// operations in the same order. For exact_math.cc and the kernels' lanes only. constexpr makes them callable on a GPU.
//
// Ops is a lane's struct of static functions on its vector type V, each one IEEE operation per
// element: set, add, sub, mul, div, fma, min (a < b ? a : b), max (a > b ? a : b), abs, and
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
inline constexpr float kTailGreatest = 172.0f;        // of -2 ln(tail): half a tail stays a normal number
inline constexpr float kExpGreatest = 0x1.62e42ep6f;  // just below 128 ln 2

// q(r) of eʳ = 1 + r + r² q(r), |r| <= ln 2 / 2: minimax, error of the whole 2⁻²⁸.
template <class Ops, class V>
[[gnu::always_inline]] constexpr V exp_rest(V r) {
  V q = Ops::set(0x1.6a2256p-10f);
  q = Ops::fma(q, r, Ops::set(0x1.123b04p-7f));
  q = Ops::fma(q, r, Ops::set(0x1.5558f8p-5f));
  q = Ops::fma(q, r, Ops::set(0x1.555490p-3f));
  return Ops::fma(q, r, Ops::set(0x1.fffffcp-2f));
}

// eʳ - 1, |r| <= ln 2 / 2.
template <class Ops, class V>
[[gnu::always_inline]] constexpr V exp_less_one(V r) {
  return Ops::fma(Ops::mul(r, r), exp_rest<Ops>(r), r);
}

// 2ⁿ eʳ, n in the low bits of t.
template <class Ops, class V>
[[gnu::always_inline]] constexpr V exp_scaled(V t, V r) {
  V p = Ops::fma(exp_rest<Ops>(r), r, Ops::set(1.0f));
  p = Ops::fma(p, r, Ops::set(1.0f));
  return Ops::add_exponent(p, t);
}

// n = rint(x log2 e), kept as kRound + n, and r = x - n ln 2.
template <class V>
struct Reduced {
  V t, r;
};
template <class Ops, class V>
[[gnu::always_inline]] constexpr Reduced<V> reduce(V x) {
  const V t = Ops::fma(x, Ops::set(kLog2E), Ops::set(kRound));
  const V n = Ops::sub(t, Ops::set(kRound));
  const V r = Ops::fma(n, Ops::set(-kLn2High), x);
  return {t, Ops::fma(n, Ops::set(-kLn2Low), r)};
}

template <class Ops, class V>
[[gnu::always_inline]] constexpr V exp(V x) {
  const auto [t, r] = reduce<Ops>(x);
  const V y = Ops::zero_if_less(exp_scaled<Ops>(t, r), x, Ops::set(kExpLeast));
  // x + infinity: infinity above the range, NaN for NaN.
  return Ops::unless_at_most(y, x, Ops::set(kExpGreatest), Ops::add(x, Ops::set(__builtin_inff())));
}

// With a = |x|: twice the upper tail, 2 (1 - Φ(a)) = exp(-d / 2) with d = a² + a q(a), where q is smooth
// (minimax, absolute error weighted by the tail), and x Φ(x) = max(x, 0) - (a / 2) exp(-d / 2).
// u = d + 2 n ln 2 comes from the exact square and product, so that the exponential keeps its relative
// precision; its polynomial is exp_scaled()'s in -u / 2, times -1/2.
template <class Ops, class V>
[[gnu::always_inline]] constexpr V gelu(V x) {
  const V a = Ops::min(Ops::set(14.0f), Ops::abs(x));
  const V square = Ops::mul(a, a);
  // The higher powers in two chains, even and odd, that do not wait for each other.
  V odd = Ops::set(0x1.c9045ep-34f);
  V even = Ops::set(-0x1.a9d59cp-28f);
  odd = Ops::fma(odd, square, Ops::set(0x1.5509aap-23f));
  even = Ops::fma(even, square, Ops::set(-0x1.361704p-19f));
  odd = Ops::fma(odd, square, Ops::set(0x1.624a6ep-16f));
  even = Ops::fma(even, square, Ops::set(-0x1.04079ap-13f));
  odd = Ops::fma(odd, square, Ops::set(0x1.b59c8ap-12f));
  even = Ops::fma(even, square, Ops::set(-0x1.3622c8p-16f));
  odd = Ops::fma(odd, square, Ops::set(-0x1.3c0278p-7f));
  even = Ops::fma(even, square, Ops::set(0x1.29e1fcp-4f));
  V q = Ops::fma(odd, a, even);
  q = Ops::fma(q, a, Ops::set(-0x1.741e66p-2f));
  q = Ops::fma(q, a, Ops::set(0x1.988472p0f));
  const V d = Ops::fma(q, a, square);
  const V t = Ops::fma(d, Ops::set(-0.5f * kLog2E), Ops::set(kRound));
  const V n = Ops::sub(t, Ops::set(kRound));
  V u = Ops::fma(a, a, Ops::mul(n, Ops::set(2.0f * kLn2High)));
  u = Ops::fma(q, a, u);
  u = Ops::fma(n, Ops::set(2.0f * kLn2Low), u);
  V p = Ops::set(-0x1.6a2256p-17f);
  p = Ops::fma(p, u, Ops::set(0x1.123b04p-13f));
  p = Ops::fma(p, u, Ops::set(-0x1.5558f8p-10f));
  p = Ops::fma(p, u, Ops::set(0x1.555490p-7f));
  p = Ops::fma(p, u, Ops::set(-0x1.fffffcp-5f));
  p = Ops::fma(p, u, Ops::set(0.25f));
  p = Ops::fma(p, u, Ops::set(-0.5f));
  const V tail = Ops::zero_if_less(Ops::add_exponent(p, t), Ops::set(kTailGreatest), d);
  return Ops::fma(a, tail, Ops::max(Ops::set(0.0f), x));
}

// x / (1 + e⁻ˣ) = (max(x, 0) + min(x, 0) e) / (1 + e) with e = exp(-|x|), which can not overflow.
template <class Ops, class V>
[[gnu::always_inline]] constexpr V swish(V x) {
  const V zero = Ops::set(0.0f);
  const V bounded = Ops::max(Ops::set(-100.0f), x);  // -infinity · 0 would be NaN
  const V minus_a = Ops::min(bounded, Ops::sub(zero, bounded));
  const auto [t, r] = reduce<Ops>(minus_a);
  const V power = Ops::add_exponent(Ops::add(exp_less_one<Ops>(r), Ops::set(1.0f)), t);
  const V e = Ops::zero_if_less(power, minus_a, Ops::set(kExpLeast));
  // The order of operands keeps NaN.
  const V above = Ops::max(zero, bounded), below = Ops::min(zero, bounded);
  return Ops::div(Ops::fma(below, e, above), Ops::add(e, Ops::set(1.0f)));
}

// (x > 0 ? 1 : e) / (1 + e) with e = exp(-|x|): no subtraction, so that both tails keep their precision.
template <class Ops, class V>
[[gnu::always_inline]] constexpr V sigmoid(V x) {
  const V one = Ops::set(1.0f);
  const V minus_a = Ops::min(x, Ops::sub(Ops::set(0.0f), x));
  const auto [t, r] = reduce<Ops>(minus_a);
  const V power = Ops::add_exponent(Ops::add(exp_less_one<Ops>(r), one), t);
  const V e = Ops::zero_if_less(power, minus_a, Ops::set(kExpLeast));
  // x + infinity: above one for x > 0, NaN for NaN, which the order of operands keeps.
  const V above = Ops::min(one, Ops::add(x, Ops::set(__builtin_inff())));
  return Ops::div(Ops::unless_at_most(e, x, Ops::set(0.0f), above), Ops::add(e, one));
}

// z / (z + 2) with z = e²ˣ - 1 = (2ⁿ - 1) + 2ⁿ (eʳ - 1): nothing cancels near 0, where n is 0.
template <class Ops, class V>
[[gnu::always_inline]] constexpr V tanh(V x) {
  // The order of operands keeps NaN.
  const V bounded = Ops::max(Ops::set(-10.0f), Ops::min(Ops::set(10.0f), x));
  const auto [t, r] = reduce<Ops>(Ops::add(bounded, bounded));
  const V power = Ops::add_exponent(Ops::set(1.0f), t);
  const V z = Ops::fma(power, exp_less_one<Ops>(r), Ops::sub(power, Ops::set(1.0f)));
  return Ops::div(z, Ops::add(z, Ops::set(2.0f)));
}

}  // namespace oasr::exact
