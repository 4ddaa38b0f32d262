// log(eᵃ + eᵇ) in double with the same bits on every processor and GPU: IEEE operations only, no libm
// (whose exp and log differ between processors with and without FMA). Templates, since nvcc takes a
// constexpr function only from one.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace oasr::decode {

inline constexpr double kLogZero = -std::numeric_limits<double>::infinity();

// eˣ for x <= 0: x = n ln 2 + r with |r| <= ln 2 / 2, the Taylor polynomial of degree 13 (its rest
// is below 1e-17), n into the exponent. 0 below -700. Relative error below 1e-15.
template <class Double>
constexpr Double exp_of_negative(Double x) {
  static_assert(std::is_same_v<Double, double>);
  if (!(x > -700.0)) return 0.0;
  constexpr double kShift = 0x1.8p52;  // adding it rounds to an integer
  const double shifted = x * 0x1.71547652b82fep0 + kShift;
  const double n = shifted - kShift;
  const double r = (x - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33;
  double p = 1.0 / 6227020800.0;
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  const auto exponent =
      (std::bit_cast<std::int64_t>(shifted) - std::bit_cast<std::int64_t>(kShift));
  return p * std::bit_cast<double>((exponent + 1023) << 52);
}

// log(1 + y) for y in [0, 1]: 2 artanh(s), s = y / (2 + y) <= 1/3, its series up to s³³ (the rest
// is below 1e-17). Absolute error below 3e-16.
template <class Double>
constexpr Double log_of_one_plus(Double y) {
  static_assert(std::is_same_v<Double, double>);
  const double s = y / (2.0 + y);
  const double q = s * s;
  double p = 1.0 / 33.0;
  p = p * q + 1.0 / 31;
  p = p * q + 1.0 / 29;
  p = p * q + 1.0 / 27;
  p = p * q + 1.0 / 25;
  p = p * q + 1.0 / 23;
  p = p * q + 1.0 / 21;
  p = p * q + 1.0 / 19;
  p = p * q + 1.0 / 17;
  p = p * q + 1.0 / 15;
  p = p * q + 1.0 / 13;
  p = p * q + 1.0 / 11;
  p = p * q + 1.0 / 9;
  p = p * q + 1.0 / 7;
  p = p * q + 1.0 / 5;
  p = p * q + 1.0 / 3;
  return 2.0 * (s + s * q * p);
}

// log(x) of a normal positive x = 2ⁿ (1 + y): n ln 2 + log(1 + y). Infinity and NaN stay. Absolute error
// below 4e-16 + 2⁻⁵² |n|: that of log_of_one_plus(), 2⁻⁵⁴ |n| of the constant, 2⁻⁵³ of the product, which is
// below 0.7 |n|, and 2⁻⁵³ of the sum, which is below 0.7 (|n| + 1).
template <class Double>
constexpr Double log_of(Double x) {
  static_assert(std::is_same_v<Double, double>);
  if (!(x <= std::numeric_limits<double>::max())) return x;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const auto n = static_cast<std::int32_t>(bits >> 52) - 1023;
  const double m = std::bit_cast<double>((bits & 0x000f'ffff'ffff'ffffu) | 0x3ff0'0000'0000'0000u);
  return n * 0x1.62e42fefa39efp-1 + log_of_one_plus(m - 1.0);
}

// log(eᵃ + eᵇ); -inf when both are. Symmetric to the bit.
template <class Double>
constexpr Double log_add(Double a, Double b) {
  static_assert(std::is_same_v<Double, double>);
  const double high = a > b ? a : b;
  const double low = a > b ? b : a;
  if (low == kLogZero) return high;
  return high + log_of_one_plus(exp_of_negative(low - high));
}

}  // namespace oasr::decode
