#include "features/natural_log.h"

#include <bit>
#include <cstdint>
#include <limits>
#include <numbers>

#include "base/check.h"

namespace oasr {
namespace {

// x = 2ⁿ m with m in [√½, √2): ln x = n ln 2 + 2 artanh(s), s = (m - 1) / (m + 1), |s| < 0.1716. The
// series in s² is cut after s¹⁵: the rest is below s¹⁶ / 17 / (1 - s²) < 2⁻⁴⁴ of 2 s.
inline float log_of(float x) {
  constexpr std::uint32_t kHalfRoot = 0x3F3504F3;  // √½
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
  const auto log = static_cast<float>(exponent * std::numbers::ln2 + 2.0 * s * series);
  return x <= std::numeric_limits<float>::max() ? log : x;
}

}  // namespace

void natural_log(std::span<const float> x, std::span<float> y) {
  CHECK(x.size() == y.size(), "as many logarithms as values");
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = log_of(x[i]);
}

}  // namespace oasr
