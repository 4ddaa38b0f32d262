// What the input [*, K] of a layer looked like while it was calibrated.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "calib/histogram.h"
#include "device/thread_pool.h"
#include "tensor/matrix.h"

namespace oasr::calib {

struct StatisticsOptions {
  std::int64_t channels = 0;        // K, at least 1
  bool channel_histograms = false;  // for scaled_histogram(): 1.5 KiB a channel, below 2^32 rows
  std::int64_t sample_rows = 256;   // the most rows kept as they are
  std::uint64_t seed = 0;           // of the choice of these rows

  friend bool operator==(const StatisticsOptions&, const StatisticsOptions&) = default;
};

// Where an input is NaN or infinite.
struct NotFiniteAt {
  std::int64_t row = 0, channel = 0;
};

// A function of the sequence of rows: neither the number of threads nor how the rows were split into
// calls shows. Sums run in the order of the rows; everything else but the sample does not depend on it.
class InputStatistics {
 public:
  // All of the state, as it is saved.
  struct State {
    StatisticsOptions options;
    std::int64_t rows = 0;                    // seen
    std::vector<float> minimum, maximum;      // [K]; 0 when no row was seen
    std::vector<double> sum, sum_of_squares;  // [K]
    Histogram histogram;                      // of all values; unused with channel histograms
    std::vector<ChannelHistogram> channels;   // [K], if asked for, once a row was seen; else empty
    std::vector<float> sample;                // [min(rows, sample_rows), K]

    friend bool operator==(const State&, const State&) = default;
  };

  explicit InputStatistics(const StatisticsOptions& options);
  // From a state of unknown origin. bad_checkpoint, with what is wrong, if no rows can give it.
  static Result<InputStatistics> restore(State state);

  // Adds rows [n, K]. If a value is not finite, nothing is added, and the first of them by row and
  // then by channel is returned.
  [[nodiscard]] std::optional<NotFiniteAt> add(ThreadPool& pool, ConstMatrix rows);

  const State& state() const { return state_; }
  std::int64_t rows() const { return state_.rows; }
  std::int64_t channels() const { return state_.options.channels; }
  float amax(std::int64_t channel) const;          // max |x_k|
  double mean(std::int64_t channel) const;         // E[x_k]; 0 when no row was seen
  double mean_square(std::int64_t channel) const;  // E[x_k²]; likewise
  Histogram histogram() const;                     // of all values
  bool has_channel_histograms() const { return state_.options.channel_histograms; }
  // Of x_k · 2^-exponents[k], bit for bit what a new histogram of these values is. [K] exponents of at
  // most Histogram::kGreatestExponent; needs the channel histograms.
  Histogram scaled_histogram(std::span<const int> exponents) const;
  // Rows chosen at random (each row seen is as likely), unordered, [min(rows, sample_rows), K].
  ConstMatrix sample() const;

  friend bool operator==(const InputStatistics&, const InputStatistics&) = default;

 private:
  explicit InputStatistics(State state) : state_(std::move(state)) {}
  void add_piece(ConstMatrix piece, std::int64_t first, Histogram& histogram);
  void add_to_sample(ConstMatrix rows);

  State state_;
};

// By the path of the layer whose input it is.
using Statistics = std::map<std::string, InputStatistics, std::less<>>;

}  // namespace oasr::calib
