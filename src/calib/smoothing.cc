#include "calib/smoothing.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace oasr::calib {
namespace {

constexpr double kSafeHalf = 60000;     // of 65504: room for the rounding of a later cast
constexpr int kLeastExponent = -14;         // of a normal float16
constexpr double kLeastWeightShare = 1e-5;  // of the greatest column

int floor_log2(double value) { return static_cast<int>(std::floor(std::log2(value))); }

}  // namespace

ExponentRange ExponentRange::both(ExponentRange other) const {
  return {std::max(least, other.least), std::min(greatest, other.greatest)};
}

ExponentRange half_range(double raised, double lowered) {
  ExponentRange range{kLeastExponent, -kLeastExponent};
  if (raised > 0) range.greatest = std::min(range.greatest, floor_log2(kSafeHalf / raised));
  if (lowered > 0) {
    range.least = std::max(range.least, -floor_log2(kSafeHalf / lowered));
    range.greatest = std::min(range.greatest, floor_log2(lowered) - kLeastExponent);
  }
  range.least = std::min(range.least, 0);
  range.greatest = std::max(range.greatest, 0);
  return range;
}

float Smoothing::scale(std::size_t channel) const { return std::ldexp(1.0f, exponents[channel]); }
float Smoothing::inverse(std::size_t channel) const { return std::ldexp(1.0f, -exponents[channel]); }

Smoothing smooth(const SmoothingInput& input, double alpha) {
  const std::size_t channels = input.input.size();
  const bool runtime = input.absorber.empty();
  CHECK(input.weight.size() == channels && (runtime || input.absorber.size() == channels),
        "magnitudes of the same channels");
  Smoothing smoothing{.exponents = std::vector<int>(channels, 0), .alpha = alpha};
  const double greatest = channels == 0 ? 0.0 : *std::ranges::max_element(input.weight);
  for (std::size_t k = 0; k < channels; ++k) {
    if (!(input.input[k] > 0)) {
      ++smoothing.idle;
      continue;
    }
    if (!(greatest > 0)) continue;
    const double weight = std::max<double>(input.weight[k], kLeastWeightShare * greatest);
    const double wanted = std::nearbyint(alpha * std::log2(static_cast<double>(input.input[k])) -
                                         (1 - alpha) * std::log2(weight));
    const ExponentRange range = half_range(input.weight[k], runtime ? 0.0 : input.absorber[k]);
    const double kept = std::clamp<double>(wanted, range.least, range.greatest);
    if (kept != wanted) ++smoothing.clamped;
    smoothing.exponents[k] = static_cast<int>(kept);
    if (kept != 0) ++smoothing.moved;
  }
  return smoothing;
}

void tie_heads(std::span<float> values, std::int64_t query_heads, std::int64_t kv_heads) {
  CHECK(kv_heads > 0 && query_heads % kv_heads == 0 &&
            static_cast<std::int64_t>(values.size()) % query_heads == 0,
        "whole groups of heads");
  const auto width = values.size() / static_cast<std::size_t>(query_heads);
  const auto shared = static_cast<std::size_t>(query_heads / kv_heads);
  for (std::size_t first = 0; first < values.size(); first += shared * width) {
    for (std::size_t d = 0; d < width; ++d) {
      float greatest = 0;
      for (std::size_t head = 0; head < shared; ++head) {
        greatest = std::max(greatest, values[first + head * width + d]);
      }
      for (std::size_t head = 0; head < shared; ++head) values[first + head * width + d] = greatest;
    }
  }
}

}  // namespace oasr::calib
