// Histograms of float32 values that need no range beforehand: a bin is an eighth of an octave.
//
// A value lies in the bin of its sign, its power of two and the next three bits of its mantissa. Bins
// are kept for the octave of the greatest magnitude seen and the 23 below it; smaller magnitudes are
// counted in an underflow bin a sign, zeros on their own. The state is a function of the multiset of
// values alone: neither their order nor how they were split and merged shows.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace oasr::calib {

// Values in [low, high], or [low, high) where another bin begins; low = high: all are that number.
struct Bin {
  double low = 0, high = 0;
  std::uint64_t count = 0;
};

// Count: std::uint64_t, or std::uint32_t where there are many and none sees 2^32 values.
template <class Count>
class BasicHistogram {
 public:
  static constexpr int kOctaves = 24;
  static constexpr int kBinsPerOctave = 8;
  static constexpr int kBins = kOctaves * kBinsPerOctave;  // of a sign
  // Cells in the order of the values: negative bins from the greatest magnitude, their underflow,
  // zeros, the underflow and the bins of positive values.
  static constexpr int kZeroCell = kBins + 1;
  static constexpr int kCells = 2 * kZeroCell + 1;
  static constexpr int kGreatestExponent = 256;  // of scaled()
  using Cells = std::array<Count, kCells>;

  BasicHistogram() = default;
  // What cells() and the two ends were of a histogram; nothing if no values can give them.
  static std::optional<BasicHistogram> restore(const Cells& cells, double minimum, double maximum);

  void add(std::span<const float> values);  // all finite
  template <class Other>
  void merge(const BasicHistogram<Other>& other);
  // The histogram of x · 2^exponent, exactly; |exponent| <= kGreatestExponent.
  BasicHistogram scaled(int exponent) const;

  std::uint64_t count() const;
  std::uint64_t zeros() const { return cells_[kZeroCell]; }
  // Exact; 0 when nothing was seen. They are floats unless scaled() left the range of floats.
  double minimum() const { return empty() ? 0 : minimum_; }
  double maximum() const { return empty() ? 0 : maximum_; }
  double amax() const;
  const Cells& cells() const { return cells_; }

  // The bins that hold values, in rising order, as narrow as minimum and maximum tell: of x, and of
  // |x|. Zeros are the bin [0, 0].
  std::vector<Bin> values() const;
  std::vector<Bin> magnitudes() const;

  friend bool operator==(const BasicHistogram&, const BasicHistogram&) = default;

 private:
  template <class Other>
  friend class BasicHistogram;

  bool empty() const { return minimum_ > maximum_; }
  void widen(double minimum, double maximum);

  Cells cells_{};
  double minimum_ = std::numeric_limits<double>::infinity();
  double maximum_ = -std::numeric_limits<double>::infinity();
};

using Histogram = BasicHistogram<std::uint64_t>;
using ChannelHistogram = BasicHistogram<std::uint32_t>;  // 1.5 KiB

}  // namespace oasr::calib
