#include "calib/observers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/glob.h"
#include "kernels/quantize/op.h"

namespace oasr::calib {
namespace {

constexpr double kGreatest = kernels::kInt8Greatest;

float to_range(double amax) {
  return static_cast<float>(std::clamp<double>(amax, kernels::kLeastAmax, std::numeric_limits<float>::max()));
}

// In units of the step: the integral of (u - q(u))² from 0 to u, q = min(rint(u), 127). Of a whole step
// it is 1/12; the last step, and all that is clipped, is a cubic around q.
double squared_error_up_to(double u) {
  const double q = std::min(std::floor(u + 0.5), kGreatest);
  const double beyond = u - q;
  return q / 12 + beyond * beyond * beyond / 3;
}

// The mean squared error of a bin.
double squared_error(const Bin& bin, double step) {
  const double low = bin.low / step, high = bin.high / step;
  if (low < high) {
    return (squared_error_up_to(high) - squared_error_up_to(low)) / (high - low) * step * step;
  }
  const double error = low - std::min(std::nearbyint(low), kGreatest);
  return error * error * step * step;
}

// The sum over all values.
double squared_error(const std::vector<Bin>& bins, double amax) {
  double sum = 0;
  for (const auto& bin : bins) sum += static_cast<double>(bin.count) * squared_error(bin, amax / kGreatest);
  return sum;
}

// The share of a bin that is beyond `limit`.
double share_beyond(const Bin& bin, double limit) {
  if (bin.high <= limit) return 0;
  return bin.low >= limit ? 1 : (bin.high - limit) / (bin.high - bin.low);
}

float minmax(const Histogram& histogram) { return to_range(histogram.amax()); }

float mse(const Histogram& histogram) {
  const auto bins = histogram.magnitudes();
  float best = to_range(histogram.amax());
  double least = squared_error(bins, best);
  for (int percent = 99; percent >= 20; --percent) {
    const float amax = to_range(histogram.amax() * percent / 100);
    const double error = squared_error(bins, amax);
    if (error >= least) continue;
    least = error;
    best = amax;
  }
  return best;
}

float percentile(const Histogram& histogram) {
  double left = 1e-4 * static_cast<double>(histogram.count());  // may lie beyond
  const auto bins = histogram.magnitudes();
  for (auto bin = bins.rbegin(); bin != bins.rend(); ++bin) {
    const auto count = static_cast<double>(bin->count);
    if (left < count) return to_range(bin->high - (bin->high - bin->low) * left / count);
    left -= count;
  }
  return to_range(0);  // nothing was seen
}

// Sums over the first bins of a histogram with bins of equal width.
struct Prefix {
  double mass = 0;     // Σ h
  double entropy = 0;  // Σ h log h
  double filled = 0;   // bins with h > 0
};

double x_log_x(double x) { return x > 0 ? x * std::log(x) : 0; }

constexpr int kLevels = 128;
constexpr int kLinearBins = 2048;

// Of the magnitudes above zero, over kLinearBins bins from 0 to amax.
std::vector<Prefix> linear_prefixes(const Histogram& histogram) {
  const double width = histogram.amax() / kLinearBins;
  std::vector<double> mass(kLinearBins);
  for (const auto& bin : histogram.magnitudes()) {
    if (bin.high == 0) continue;
    double done = 0;  // share of the bin that is placed
    for (int i = std::min(static_cast<int>(bin.low / width), kLinearBins - 1); done < 1; ++i) {
      const double below = 1 - share_beyond(bin, (i + 1) * width);
      mass[i] += static_cast<double>(bin.count) * (below - done);
      done = below;
    }
  }
  std::vector<Prefix> sums(1);
  for (const double h : mass) {
    const Prefix& last = sums.back();
    sums.push_back({last.mass + h, last.entropy + x_log_x(h), last.filled + (h > 0 ? 1 : 0)});
  }
  return sums;
}

// The Kullback-Leibler divergence of the values clipped to the first `kept` bins from what 128 levels
// tell of them: the mass of a level spread over its filled bins, without what was clipped.
double divergence(const std::vector<Prefix>& sums, int kept) {
  const double all = sums.back().mass, inside = sums[kept].mass;
  const double last = all - sums[kept - 1].mass;  // the clipped ones lie in the last bin
  const bool last_was_empty = inside == sums[kept - 1].mass;
  double sum = sums[kept - 1].entropy + x_log_x(last);
  for (int level = 0; level < kLevels; ++level) {
    const Prefix &begin = sums[level * kept / kLevels], &end = sums[(level + 1) * kept / kLevels];
    const bool has_last = level == kLevels - 1;
    const double p = (has_last ? all : end.mass) - begin.mass;
    const double filled = end.filled - begin.filled + (has_last && last_was_empty && last > 0 ? 1 : 0);
    if (p > 0) sum -= p * std::log((end.mass - begin.mass) / filled);
  }
  return sum / all - std::log(all / inside);
}

float entropy(const Histogram& histogram) {
  if (histogram.amax() == 0) return to_range(0);
  const auto sums = linear_prefixes(histogram);
  int best = kLinearBins;
  double least = divergence(sums, best);
  for (int kept = kLinearBins - 1; kept >= kLevels; --kept) {
    const double found = divergence(sums, kept);
    if (!(found < least)) continue;
    least = found;
    best = kept;
  }
  return to_range(histogram.amax() * best / kLinearBins);
}

constexpr std::array kObservers = {
    Observer{"minmax", "the greatest magnitude seen: nothing is clipped", minmax},
    Observer{"mse", "the range with the least expected squared error", mse},
    Observer{"percentile", "99.99 % of the values: one in ten thousand is clipped", percentile},
    Observer{"entropy", "the least Kullback-Leibler divergence of 128 levels, as TensorRT calibrates",
             entropy},
};

}  // namespace

std::span<const Observer> observers() { return kObservers; }

Result<const Observer*> find_observer(std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto& observer : kObservers) {
    if (observer.name == name) return &observer;
    names.push_back(observer.name);
  }
  return unexpected(ErrorCode::invalid_argument, fmt::format("'{}' is not an observer", name), "observer",
                    fmt::format("{}observers: {}", did_you_mean(name, names), fmt::join(names, ", ")));
}

ClipError examine(const Histogram& histogram, float amax) {
  const auto bins = histogram.magnitudes();
  double clipped = 0, square = 0;
  for (const auto& [low, high, count] : bins) {
    clipped += static_cast<double>(count) * share_beyond({low, high, count}, amax);
    square += static_cast<double>(count) * (low * low + low * high + high * high) / 3;
  }
  if (square == 0) return {};
  return {clipped / static_cast<double>(histogram.count()), squared_error(bins, amax) / square};
}

}  // namespace oasr::calib
