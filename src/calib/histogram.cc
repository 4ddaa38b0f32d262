#include "calib/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace oasr::calib {
namespace {

// A magnitude as a double, which holds every float as a normal number, and every scaled one. Its
// exponent and the three bits after it are the key of its bin; the keys of an octave end in 0 to 7.
constexpr int kKeyShift = 49;

int key_of(double magnitude) {
  return static_cast<int>(std::bit_cast<std::uint64_t>(magnitude) >> kKeyShift);
}

// The least magnitude of a bin.
double edge(int key) { return std::bit_cast<double>(static_cast<std::uint64_t>(key) << kKeyShift); }

// The key of the least bin that is kept for a greatest magnitude.
int first_key(double amax) { return (key_of(amax) | (Histogram::kBinsPerOctave - 1)) + 1 - Histogram::kBins; }

// The cell of x, for the key of the least bin that is kept; x is not above the greatest bin. Without a
// branch: the signs and zeros of real inputs can not be predicted.
int cell_of(double x, int first) {
  const auto high = static_cast<std::int32_t>(std::bit_cast<std::int64_t>(x) >> 32);
  const int sign = high >> 31;  // 0 or -1
  const int key = (high & INT32_MAX) >> (kKeyShift - 32);
  const int nonzero = -key >> 31;  // 0 or -1
  // From the zeros: 1 for the underflow, 2 for the bin `first`, 3 for the next one.
  const int distance = (std::max(key - first, -1) + 2) & nonzero;
  return Histogram::kZeroCell + ((distance ^ sign) - sign);
}

// Least and greatest of floats. As integers, whose order is the floats' once the magnitude of negative
// ones is turned around: unlike the floats' minimum, that of integers is vectorized.
struct Ends {
  double minimum, maximum;
};
std::int32_t ordered(std::int32_t bits) { return bits ^ ((bits >> 31) & 0x7FFFFFFF); }
Ends ends_of(std::span<const float> values) {
  std::int32_t least = INT32_MAX, greatest = INT32_MIN;
  for (const float value : values) {
    const std::int32_t at = ordered(std::bit_cast<std::int32_t>(value));
    least = std::min(least, at);
    greatest = std::max(greatest, at);
  }
  const auto value = [](std::int32_t at) { return std::bit_cast<float>(ordered(at)) + 0.0; };  // no -0
  return {value(least), value(greatest)};
}

// Moves the window up by `bins`: the lowest ones go into the underflow.
template <class Cells>
void raise(Cells& cells, int bins) {
  constexpr int kZero = Histogram::kZeroCell;
  bins = std::min(bins, Histogram::kBins);
  for (const int sign : {-1, 1}) {
    const auto bin = [&](int i) -> auto& { return cells[static_cast<std::size_t>(kZero + sign * (2 + i))]; };
    for (int i = 0; i < bins; ++i) bin(-1) += bin(i);
    for (int i = 0; i < Histogram::kBins; ++i) bin(i) = i + bins < Histogram::kBins ? bin(i + bins) : 0;
  }
}

}  // namespace

template <class Count>
std::optional<BasicHistogram<Count>> BasicHistogram<Count>::restore(const Cells& cells, double minimum,
                                                                    double maximum) {
  BasicHistogram histogram;
  histogram.cells_ = cells;
  std::uint64_t left = UINT64_MAX;  // count() must not overflow
  for (const std::uint64_t count : cells) {
    if (count > left) return std::nullopt;
    left -= count;
  }
  const auto filled = [](Count count) { return count != 0; };
  const auto lowest = std::find_if(cells.begin(), cells.end(), filled) - cells.begin();
  const auto highest = cells.rend() - std::find_if(cells.rbegin(), cells.rend(), filled) - 1;
  if (highest < 0) {
    return minimum == 0 && maximum == 0 ? std::optional(BasicHistogram()) : std::nullopt;
  }
  if (!std::isfinite(minimum) || !std::isfinite(maximum)) return std::nullopt;
  histogram.minimum_ = minimum + 0.0;
  histogram.maximum_ = maximum + 0.0;
  const int first = first_key(histogram.amax());
  if (cell_of(histogram.minimum_, first) != lowest || cell_of(histogram.maximum_, first) != highest) {
    return std::nullopt;
  }
  return minimum <= maximum ? std::optional(histogram) : std::nullopt;
}

template <class Count>
double BasicHistogram<Count>::amax() const {
  return std::max({0.0, -minimum_, maximum_});  // the first of equals: no -0
}

template <class Count>
void BasicHistogram<Count>::widen(double minimum, double maximum) {
  const int before = first_key(amax());
  minimum_ = std::min(minimum_, minimum);
  maximum_ = std::max(maximum_, maximum);
  const int after = first_key(amax());
  if (after > before) raise(cells_, after - before);
}

template <class Count>
void BasicHistogram<Count>::add(std::span<const float> values) {
  if (values.empty()) return;
  const auto [minimum, maximum] = ends_of(values);
  widen(minimum, maximum);
  const int first = first_key(amax());
  std::array<std::int32_t, 256> at;  // cells, found apart from the counting so that it is vectorized
  while (!values.empty()) {
    const auto part = values.first(std::min(values.size(), at.size()));
    for (std::size_t i = 0; i < part.size(); ++i) at[i] = cell_of(part[i], first);
    for (std::size_t i = 0; i < part.size(); ++i) ++cells_[static_cast<std::size_t>(at[i])];
    values = values.subspan(part.size());
  }
}

template <class Count>
template <class Other>
void BasicHistogram<Count>::merge(const BasicHistogram<Other>& other) {
  widen(other.minimum_, other.maximum_);
  auto cells = other.cells_;
  raise(cells, first_key(amax()) - first_key(other.amax()));
  for (int i = 0; i < kCells; ++i) cells_[i] += static_cast<Count>(cells[i]);
}

template <class Count>
BasicHistogram<Count> BasicHistogram<Count>::scaled(int exponent) const {
  CHECK(std::abs(exponent) <= kGreatestExponent, "a histogram is scaled out of range");
  BasicHistogram result = *this;
  result.minimum_ = std::ldexp(minimum_, exponent);
  result.maximum_ = std::ldexp(maximum_, exponent);
  return result;
}

template <class Count>
std::uint64_t BasicHistogram<Count>::count() const {
  return std::accumulate(cells_.begin(), cells_.end(), std::uint64_t{0});
}

template <class Count>
std::vector<Bin> BasicHistogram<Count>::values() const {
  const int first = first_key(amax());
  std::vector<Bin> bins;
  for (int cell = 0; cell < kCells; ++cell) {
    const int at = std::abs(cell - kZeroCell);
    const double near = at < 2 ? 0.0 : edge(first + at - 2), far = at < 1 ? 0.0 : edge(first + at - 1);
    const double low = cell < kZeroCell ? -far : near, high = cell < kZeroCell ? -near : far;
    if (cells_[cell] != 0) {
      bins.push_back({std::max(low, minimum_), std::min(high, maximum_), cells_[cell]});
    }
  }
  return bins;
}

template <class Count>
std::vector<Bin> BasicHistogram<Count>::magnitudes() const {
  const int first = first_key(amax());
  const double least = std::max({minimum_, -maximum_, 0.0});
  std::vector<Bin> bins;
  if (zeros() != 0) bins.push_back({0, 0, zeros()});
  for (int at = 1; at <= kZeroCell; ++at) {
    const std::uint64_t count = std::uint64_t{cells_[kZeroCell - at]} + cells_[kZeroCell + at];
    const double low = at < 2 ? 0.0 : edge(first + at - 2);
    if (count != 0) bins.push_back({std::max(low, least), std::min(edge(first + at - 1), amax()), count});
  }
  return bins;
}

template class BasicHistogram<std::uint64_t>;
template class BasicHistogram<std::uint32_t>;
template void Histogram::merge(const Histogram&);
template void Histogram::merge(const ChannelHistogram&);

}  // namespace oasr::calib
