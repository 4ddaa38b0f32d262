#include "calib/input_statistics.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <string>

#include "base/check.h"

namespace oasr::calib {
namespace {

// A block of columns is the work of one thread: a cache line of a row.
constexpr std::int64_t kColumns = 16;
constexpr std::int64_t kRows = 256;  // of a piece of it
constexpr std::int32_t kInfinityBits = 0x7F800000;

constexpr std::size_t as_size(std::int64_t n) { return static_cast<std::size_t>(n); }

std::optional<NotFiniteAt> first_not_finite(ConstMatrix rows) {
  for (std::int64_t r = 0; r < rows.rows; ++r) {
    const float* x = rows.row(r);
    std::int32_t greatest = 0;  // magnitude, as bits: vectorized, unlike a sum or a maximum of floats
    for (std::int64_t k = 0; k < rows.columns; ++k) {
      greatest = std::max(greatest, std::bit_cast<std::int32_t>(x[k]) & INT32_MAX);
    }
    if (greatest < kInfinityBits) continue;
    const auto found = std::find_if(x, x + rows.columns, [](float value) { return !std::isfinite(value); });
    return NotFiniteAt{r, found - x};
  }
  return std::nullopt;
}

// A number below n, fixed by the seed and i: the finalizer of SplitMix64 over the i-th step of its
// state. Unlike an engine's it needs no state, so that statistics that were saved go on as if they
// had not been.
std::int64_t draw(std::uint64_t seed, std::int64_t i, std::int64_t n) {
  std::uint64_t z = seed + 0x9E3779B97F4A7C15 * (static_cast<std::uint64_t>(i) + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::int64_t>((static_cast<Wide>(z ^ (z >> 31)) * static_cast<std::uint64_t>(n)) >> 64);
}

// Why no rows can give the numbers of channel k; empty if some can.
std::string_view problem_of_channel(const InputStatistics::State& state, std::size_t k) {
  const float minimum = state.minimum[k], maximum = state.maximum[k];
  const double sum = state.sum[k], square = state.sum_of_squares[k];
  if (!std::isfinite(minimum) || !std::isfinite(maximum) || !std::isfinite(sum) || !std::isfinite(square)) {
    return "a channel has NaN or infinity";
  }
  if (minimum > maximum || square < 0) return "a channel has an impossible range or sum of squares";
  if (state.rows == 0 && (minimum != 0 || maximum != 0 || sum != 0 || square != 0)) {
    return "a channel has values although no row was seen";
  }
  const auto width = state.minimum.size();
  for (std::size_t i = k; i < state.sample.size(); i += width) {
    const float x = state.sample[i];
    if (!(minimum <= x && x <= maximum)) return "a row of the sample is out of range";
  }
  if (state.channels.empty()) return {};
  const auto& histogram = state.channels[k];
  if (histogram.minimum() != minimum || histogram.maximum() != maximum ||
      histogram.count() != static_cast<std::uint64_t>(state.rows)) {
    return "a channel's histogram is not that of its values";
  }
  return {};
}

std::string_view problem_of(const InputStatistics::State& state) {
  const auto& [channels, channel_histograms, sample_rows, seed] = state.options;
  if (channels < 1 || state.rows < 0 || sample_rows < 0 || state.rows > INT64_MAX / channels) {
    return "a number of channels or rows is out of range";
  }
  const auto k = as_size(channels);
  if (state.minimum.size() != k || state.maximum.size() != k || state.sum.size() != k ||
      state.sum_of_squares.size() != k ||
      state.channels.size() != (channel_histograms && state.rows > 0 ? k : 0)) {
    return "a list has another length than the channels";
  }
  const auto kept = as_size(std::min(state.rows, sample_rows));
  if (state.sample.size() % k != 0 || state.sample.size() / k != kept) {
    return "the sample has another number of rows than were kept";
  }
  for (std::size_t i = 0; i < k; ++i) {
    if (const auto problem = problem_of_channel(state, i); !problem.empty()) return problem;
  }
  const auto least = *std::min_element(state.minimum.begin(), state.minimum.end());
  const auto greatest = *std::max_element(state.maximum.begin(), state.maximum.end());
  const auto& histogram = state.histogram;
  if (channel_histograms ? histogram != Histogram()
                         : histogram.minimum() != least || histogram.maximum() != greatest ||
                               histogram.count() != static_cast<std::uint64_t>(state.rows * channels)) {
    return "the histogram is not that of the values";
  }
  return {};
}

}  // namespace

InputStatistics::InputStatistics(const StatisticsOptions& options) {
  CHECK(options.channels > 0 && options.sample_rows >= 0, "statistics of no channels");
  const auto k = as_size(options.channels);
  state_.options = options;
  state_.minimum.resize(k);
  state_.maximum.resize(k);
  state_.sum.resize(k);
  state_.sum_of_squares.resize(k);
}

Result<InputStatistics> InputStatistics::restore(State state) {
  if (const auto problem = problem_of(state); !problem.empty()) {
    return unexpected(ErrorCode::bad_checkpoint, std::string(problem), {}, "calibrate again");
  }
  return InputStatistics(std::move(state));
}

std::optional<NotFiniteAt> InputStatistics::add(ThreadPool& pool, ConstMatrix rows) {
  CHECK(rows.columns == channels(), "rows of another width than the statistics");
  if (rows.rows == 0) return std::nullopt;
  if (const auto found = first_not_finite(rows)) return found;
  if (state_.rows == 0) {
    std::copy_n(rows.row(0), rows.columns, state_.minimum.begin());
    state_.maximum = state_.minimum;
    if (has_channel_histograms()) state_.channels.resize(as_size(channels()));
    state_.sample.reserve(as_size(state_.options.sample_rows * channels()));  // no more than it will hold
  }
  std::vector<Histogram> histograms(as_size(pool.threads()));  // their sum does not depend on the shares
  pool.parallel_for((rows.columns + kColumns - 1) / kColumns, [&](std::int64_t block, int thread) {
    const std::int64_t first = block * kColumns;
    const auto columns = rows.column_range(first, std::min(kColumns, rows.columns - first));
    for (std::int64_t r = 0; r < rows.rows; r += kRows) {
      add_piece(columns.row_range(r, std::min(kRows, rows.rows - r)), first, histograms[as_size(thread)]);
    }
  });
  for (const auto& histogram : histograms) state_.histogram.merge(histogram);
  add_to_sample(rows);
  state_.rows += rows.rows;
  return std::nullopt;
}

// A piece of at most kRows rows and kColumns columns. All columns of a block are summed, those that
// the piece lacks as zeros, so that the compiler has loops of a known length.
void InputStatistics::add_piece(ConstMatrix piece, std::int64_t first, Histogram& histogram) {
  constexpr auto kWidth = as_size(kColumns);
  const auto count = as_size(piece.columns), rows = as_size(piece.rows);
  std::array<float, kWidth> minimum{}, maximum{}, x{};
  std::array<double, kWidth> sum{}, sum_of_squares{};
  std::array<std::array<float, as_size(kRows)>, kWidth> columns;
  std::copy_n(state_.minimum.begin() + first, count, minimum.begin());
  std::copy_n(state_.maximum.begin() + first, count, maximum.begin());
  std::copy_n(state_.sum.begin() + first, count, sum.begin());
  std::copy_n(state_.sum_of_squares.begin() + first, count, sum_of_squares.begin());
  for (std::size_t r = 0; r < rows; ++r) {
    std::copy_n(piece.row(static_cast<std::int64_t>(r)), count, x.begin());
    for (std::size_t c = 0; c < kWidth; ++c) {
      const double value = x[c];
      minimum[c] = std::min(minimum[c], x[c]);
      maximum[c] = std::max(maximum[c], x[c]);
      sum[c] += value;
      sum_of_squares[c] += value * value;
      columns[c][r] = x[c];
    }
  }
  std::copy_n(minimum.begin(), count, state_.minimum.begin() + first);
  std::copy_n(maximum.begin(), count, state_.maximum.begin() + first);
  std::copy_n(sum.begin(), count, state_.sum.begin() + first);
  std::copy_n(sum_of_squares.begin(), count, state_.sum_of_squares.begin() + first);
  for (std::size_t c = 0; c < count; ++c) {
    const std::span<const float> values(columns[c].data(), rows);
    if (has_channel_histograms()) {
      state_.channels[as_size(first) + c].add(values);
    } else {
      histogram.add(values);
    }
  }
}

// Algorithm R: row i replaces one of the kept rows with probability sample_rows / (i + 1).
void InputStatistics::add_to_sample(ConstMatrix rows) {
  const std::int64_t limit = state_.options.sample_rows;
  state_.sample.resize(as_size(std::min(state_.rows + rows.rows, limit) * channels()));
  for (std::int64_t r = 0; r < rows.rows; ++r) {
    const std::int64_t i = state_.rows + r;
    const std::int64_t at = i < limit ? i : draw(state_.options.seed, i, i + 1);
    if (at < limit) std::copy_n(rows.row(r), channels(), state_.sample.begin() + at * channels());
  }
}

float InputStatistics::amax(std::int64_t channel) const {
  return std::max(std::fabs(state_.minimum[as_size(channel)]), std::fabs(state_.maximum[as_size(channel)]));
}

double InputStatistics::mean(std::int64_t channel) const {
  return state_.rows == 0 ? 0 : state_.sum[as_size(channel)] / static_cast<double>(state_.rows);
}

double InputStatistics::mean_square(std::int64_t channel) const {
  return state_.rows == 0 ? 0 : state_.sum_of_squares[as_size(channel)] / static_cast<double>(state_.rows);
}

Histogram InputStatistics::histogram() const {
  Histogram sum = state_.histogram;
  for (const auto& channel : state_.channels) sum.merge(channel);
  return sum;
}

Histogram InputStatistics::scaled_histogram(std::span<const int> exponents) const {
  CHECK(has_channel_histograms(), "the statistics have no histogram a channel");
  CHECK(exponents.size() == state_.minimum.size(), "exponents of another number of channels");
  Histogram sum;
  for (std::size_t k = 0; k < state_.channels.size(); ++k)
    sum.merge(state_.channels[k].scaled(-exponents[k]));
  return sum;
}

ConstMatrix InputStatistics::sample() const {
  return {state_.sample.data(), std::min(state_.rows, state_.options.sample_rows), channels(), channels()};
}

}  // namespace oasr::calib
