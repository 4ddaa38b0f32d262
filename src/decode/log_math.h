// log(eᵃ + eᵇ) in double with the same bits on every processor: IEEE operations only, no libm
// (whose exp and log differ between processors with and without FMA).
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>

namespace oasr::decode {

inline constexpr double kLogZero = -std::numeric_limits<double>::infinity();

// eˣ for x <= 0: x = n ln 2 + r with |r| <= ln 2 / 2, the Taylor polynomial of degree 13 (its rest
// is below 1e-17), n into the exponent. 0 below -700. Relative error below 1e-15.
inline double exp_of_negative(double x) {
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
inline double log_of_one_plus(double y) {
  const double s = y / (2.0 + y);
  const double q = s * s;
  constexpr std::array kOdd = {1.0 / 31, 1.0 / 29, 1.0 / 27, 1.0 / 25, 1.0 / 23,
                               1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13,
                               1.0 / 11, 1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3};
  double p = 1.0 / 33.0;
  for (const double inverse : kOdd) p = p * q + inverse;
  return 2.0 * (s + s * q * p);
}

// log(eᵃ + eᵇ); -inf when both are. Symmetric to the bit.
inline double log_add(double a, double b) {
  const double high = a > b ? a : b;
  const double low = a > b ? b : a;
  if (low == kLogZero) return high;
  return high + log_of_one_plus(exp_of_negative(low - high));
}

}  // namespace oasr::decode
