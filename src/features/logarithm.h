// Logarithms with the same bits on every processor and GPU: libm chooses its code by instruction set.
#pragma once

#include <bit>
#include <cstdint>
#include <numbers>
#include <span>

namespace oasr {

enum class LogBase : std::uint8_t { e, ten };

// The logarithm of x, rounded to nearest from a value in double that is off by less than 2⁻⁴¹ of itself (or
// of one). For positive normal numbers; +infinity and NaN stay as they are. Never falls where x rises: that
// of neighbours differs by 2⁻²⁶ at least. A template, since nvcc takes a constexpr function only from one.
//
// x = 2ⁿ m with m in [√½, √2): ln x = n ln 2 + 2 artanh(s), s = (m - 1) / (m + 1), |s| < 0.1716. The
// series in s² is cut after s¹⁵: the rest is below s¹⁶ / 17 / (1 - s²) < 2⁻⁴⁴ of 2 s.
template <LogBase kBase>
[[gnu::always_inline]] constexpr float log_of(float x) {
  constexpr std::uint32_t kHalfRoot = 0x3F3504F3;  // √½
  constexpr double kTwo = kBase == LogBase::e ? std::numbers::ln2 : std::numbers::ln2 * std::numbers::log10e;
  constexpr double kTwice = kBase == LogBase::e ? 2.0 : 2.0 * std::numbers::log10e;
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const auto exponent = static_cast<std::int32_t>(bits - kHalfRoot) >> 23;
  const double m = std::bit_cast<float>(bits - (static_cast<std::uint32_t>(exponent) << 23));
  const double s = (m - 1.0) / (m + 1.0), q = s * s;
  double series = 1.0 / 15;
  series = series * q + 1.0 / 13;
  series = series * q + 1.0 / 11;
  series = series * q + 1.0 / 9;
  series = series * q + 1.0 / 7;
  series = series * q + 1.0 / 5;
  series = series * q + 1.0 / 3;
  series = series * q + 1.0;
  const auto log = static_cast<float>(exponent * kTwo + kTwice * s * series);
  // By masks: with a branch compilers make no vectors of a loop.
  const std::uint32_t keep = bits < 0x7F800000u ? 0u : ~0u;
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(log) & ~keep) | (bits & keep));
}

// y[i] = log_of(x[i]).
void natural_log(std::span<const float> x, std::span<float> y);
void common_log(std::span<const float> x, std::span<float> y);

}  // namespace oasr
