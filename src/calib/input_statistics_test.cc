#include "calib/input_statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

namespace oasr::calib {
namespace {

using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Rows whose channels differ by many octaves; channel 3 is never active, channel 5 only positive.
struct Rows {
  std::int64_t rows, columns;
  std::vector<float> values;

  Rows(std::int64_t rows, std::int64_t columns, unsigned seed = 1) : rows(rows), columns(columns) {
    std::mt19937_64 engine(seed);
    for (std::int64_t i = 0; i < rows * columns; ++i) {
      const std::int64_t k = i % columns;
      const double uniform = static_cast<double>(engine() >> 11) * 0x1p-53 - 0.4;
      const auto x =
          static_cast<float>(std::ldexp(uniform * uniform * uniform, static_cast<int>(k * 7 % 23) - 9));
      values.push_back(k == 3 ? 0.0f : k == 5 ? std::fabs(x) : x);
    }
  }
  ConstMatrix matrix() const { return {values.data(), rows, columns, columns}; }
  std::vector<float> channel(std::int64_t k) const {
    std::vector<float> found;
    for (std::int64_t r = 0; r < rows; ++r) found.push_back(matrix().row(r)[k]);
    return found;
  }
};

InputStatistics of(const StatisticsOptions& options, ConstMatrix rows, int threads = 1) {
  ThreadPool pool(threads);
  InputStatistics statistics(options);
  EXPECT_FALSE(statistics.add(pool, rows));
  return statistics;
}

TEST(InputStatistics, SumsEveryChannelInTheOrderOfRows) {
  const Rows rows(700, 37);
  const auto statistics = of({.channels = 37}, rows.matrix(), 2);
  EXPECT_EQ(statistics.rows(), 700);
  for (std::int64_t k = 0; k < 37; ++k) {
    const auto values = rows.channel(k);
    double sum = 0, square = 0;
    for (const double x : values) sum += x, square += x * x;
    const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
    const auto at = static_cast<std::size_t>(k);
    EXPECT_EQ(statistics.state().minimum[at], *least);
    EXPECT_EQ(statistics.state().maximum[at], *greatest);
    EXPECT_EQ(statistics.state().sum[at], sum);
    EXPECT_EQ(statistics.state().sum_of_squares[at], square);
    EXPECT_EQ(statistics.amax(k), std::max(std::fabs(*least), std::fabs(*greatest)));
    EXPECT_EQ(statistics.mean(k), sum / 700);
    EXPECT_EQ(statistics.mean_square(k), square / 700);
  }
}

TEST(InputStatistics, HistogramIsThatOfAllValues) {
  const Rows rows(700, 37);
  Histogram expected;
  expected.add(rows.values);
  for (const bool channels : {false, true}) {
    EXPECT_EQ(of({.channels = 37, .channel_histograms = channels}, rows.matrix(), 2).histogram(), expected);
  }
}

TEST(InputStatistics, ReadsRowsWithAStride) {
  const Rows rows(300, 37);
  const auto part = rows.matrix().column_range(4, 20);
  Rows alone(300, 20);
  for (std::int64_t r = 0; r < 300; ++r) std::copy_n(part.row(r), 20, alone.values.begin() + r * 20);
  const StatisticsOptions options{.channels = 20, .channel_histograms = true};
  EXPECT_EQ(of(options, part), of(options, alone.matrix()));
}

TEST(InputStatistics, DoesNotDependOnThreadsOrOnHowRowsAreSplit) {
  const Rows rows(1000, 131);
  for (const bool channels : {false, true}) {
    const StatisticsOptions options{
        .channels = 131, .channel_histograms = channels, .sample_rows = 16, .seed = 5};
    const auto whole = of(options, rows.matrix());
    for (const int threads : {1, 2, 3}) {
      ThreadPool pool(threads);
      InputStatistics pieces(options);
      std::int64_t at = 0;
      for (const std::int64_t count : {1, 0, 255, 1, 700, 43}) {
        EXPECT_FALSE(pieces.add(pool, rows.matrix().row_range(at, count)));
        at += count;
      }
      ASSERT_EQ(at, 1000);
      EXPECT_EQ(pieces, whole) << threads;
    }
  }
}

TEST(InputStatistics, ScaledHistogramIsThatOfScaledValues) {
  const Rows rows(500, 61);
  const auto statistics = of({.channels = 61, .channel_histograms = true}, rows.matrix());
  std::mt19937_64 engine(2);
  for (const int widest : {0, 1, 4, 20, 60}) {
    std::vector<int> exponents;
    Rows scaled = rows;
    for (int k = 0; k < 61; ++k) {
      exponents.push_back(static_cast<int>(engine() % static_cast<unsigned>(2 * widest + 1)) - widest);
      for (std::int64_t r = 0; r < 500; ++r) {
        auto& value = scaled.values[static_cast<std::size_t>(r * 61 + k)];
        value = std::ldexp(value, -exponents.back());
      }
    }
    Histogram expected;
    expected.add(scaled.values);
    EXPECT_EQ(statistics.scaled_histogram(exponents), expected) << widest;
  }
}

TEST(InputStatistics, WhatIsNotFiniteChangesNothing) {
  ThreadPool pool(2);
  const Rows rows(300, 40);
  auto statistics = of({.channels = 40, .channel_histograms = true}, rows.matrix());
  const auto before = statistics;
  Rows bad(300, 40, 2);
  bad.values[290 * 40 + 1] = kInfinity;
  bad.values[200 * 40 + 39] = std::nanf("");
  bad.values[200 * 40 + 17] = -kInfinity;
  const auto found = statistics.add(pool, bad.matrix());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->row, 200);
  EXPECT_EQ(found->channel, 17);
  EXPECT_EQ(statistics, before);
  bad.values[200 * 40 + 39] = bad.values[200 * 40 + 17] = std::numeric_limits<float>::max();
  EXPECT_EQ(statistics.add(pool, bad.matrix())->row, 290);
}

TEST(InputStatistics, BeforeAnyRowEverythingIsZero) {
  const InputStatistics statistics({.channels = 3});
  EXPECT_EQ(statistics.rows(), 0);
  EXPECT_EQ(statistics.amax(2), 0);
  EXPECT_EQ(statistics.mean(2), 0);
  EXPECT_EQ(statistics.mean_square(2), 0);
  EXPECT_EQ(statistics.histogram(), Histogram());
  EXPECT_EQ(statistics.sample().rows, 0);
}

TEST(Sample, KeepsAllRowsWhileTheyFit) {
  const Rows rows(20, 7);
  EXPECT_EQ(of({.channels = 7, .sample_rows = 20}, rows.matrix()).state().sample, rows.values);
  EXPECT_EQ(of({.channels = 7, .sample_rows = 100}, rows.matrix()).state().sample, rows.values);
  EXPECT_EQ(of({.channels = 7, .sample_rows = 0}, rows.matrix()).sample().rows, 0);
}

TEST(Sample, HoldsDifferentRowsOfTheInput) {
  std::vector<float> values(5000);
  for (std::size_t r = 0; r < values.size(); ++r) values[r] = static_cast<float>(r);
  const auto statistics = of({.channels = 1, .sample_rows = 64, .seed = 9}, {values.data(), 5000, 1, 1});
  auto sample = statistics.state().sample;
  ASSERT_EQ(sample.size(), 64u);
  std::sort(sample.begin(), sample.end());
  EXPECT_EQ(std::adjacent_find(sample.begin(), sample.end()), sample.end());
  EXPECT_GE(sample.front(), 0);
  EXPECT_LT(sample.back(), 5000);
  EXPECT_NE(of({.channels = 1, .sample_rows = 64, .seed = 8}, {values.data(), 5000, 1, 1}).state().sample,
            statistics.state().sample);
}

TEST(Sample, TakesEveryRowAsOften) {
  // 4000 seeds keep 8 of 80 rows: a row is kept 400 times, with a deviation of sqrt(4000 · 0.1 · 0.9) = 19.
  constexpr int kSeeds = 4000;
  std::vector<float> values(80);
  for (std::size_t r = 0; r < values.size(); ++r) values[r] = static_cast<float>(r);
  std::vector<int> times(80);
  ThreadPool pool(1);
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    InputStatistics statistics({.channels = 1, .sample_rows = 8, .seed = seed});
    ASSERT_FALSE(statistics.add(pool, {values.data(), 80, 1, 1}));
    for (const float row : statistics.state().sample) ++times[static_cast<std::size_t>(row)];
  }
  for (const int kept : times) EXPECT_NEAR(kept, 400, 5 * 19);
}

// A state that add() made, then changed by `change`.
Status restored(const std::function<void(InputStatistics::State&)>& change, bool channel_histograms = false) {
  auto state =
      of({.channels = 6, .channel_histograms = channel_histograms, .sample_rows = 4}, Rows(10, 6).matrix())
          .state();
  change(state);
  const auto statistics = InputStatistics::restore(std::move(state));
  if (!statistics) return unexpected(statistics.error());
  return {};
}

TEST(Restore, TakesWhatWasSavedAndGoesOn) {
  const Rows rows(1000, 6);
  ThreadPool pool(1);
  for (const bool channels : {false, true}) {
    const StatisticsOptions options{.channels = 6, .channel_histograms = channels, .sample_rows = 4};
    auto first = of(options, rows.matrix().row_range(0, 400));
    auto again = InputStatistics::restore(first.state());
    ASSERT_TRUE(again) << again.error().message();
    EXPECT_EQ(*again, first);
    EXPECT_FALSE(again->add(pool, rows.matrix().row_range(400, 600)));
    EXPECT_EQ(*again, of(options, rows.matrix()));
  }
  EXPECT_TRUE(InputStatistics::restore(InputStatistics({.channels = 2}).state()));
}

TEST(Restore, RefusesWhatNoRowsGive) {
  using State = InputStatistics::State;
  struct Case {
    std::string_view problem;
    std::function<void(State&)> change;
    bool channel_histograms = false;
  };
  const std::vector<Case> cases = {
      {"out of range", [](State& s) { s.options.channels = 0; }},
      {"out of range", [](State& s) { s.rows = -1; }},
      {"out of range", [](State& s) { s.rows = INT64_MAX / 2; }},
      {"out of range", [](State& s) { s.options.sample_rows = -1; }},
      {"another length", [](State& s) { s.minimum.pop_back(); }},
      {"another length", [](State& s) { s.sum_of_squares.push_back(0); }},
      {"another length", [](State& s) { s.options.channel_histograms = true; }},
      {"another length", [](State& s) { s.channels.pop_back(); }, true},
      {"another number of rows", [](State& s) { s.sample.pop_back(); }},
      {"another number of rows", [](State& s) { s.sample.resize(5 * 6); }},
      {"another number of rows", [](State& s) { s.sample.push_back(0); }},
      {"NaN or infinity", [](State& s) { s.sum[1] = kInfinity; }},
      {"NaN or infinity", [](State& s) { s.minimum[1] = std::nanf(""); }},
      {"impossible", [](State& s) { s.sum_of_squares[1] = -1; }},
      {"impossible", [](State& s) { std::swap(s.minimum[1], s.maximum[1]); }},
      {"no row was seen", [](State& s) { s.rows = 0, s.sample.clear(); }},
      {"sample is out of range", [](State& s) { s.sample[6 + 2] = 1e9f; }},
      {"sample is out of range", [](State& s) { s.sample[3] = std::nanf(""); }},
      {"the histogram is not", [](State& s) { s.rows = 11; }},
      {"the histogram is not", [](State& s) { s.histogram = {}; }},
      {"the histogram is not", [](State& s) { s.histogram = s.histogram.scaled(1); }},
      {"channel's histogram is not", [](State& s) { s.rows = 11; }, true},
      {"channel's histogram is not", [](State& s) { s.channels[4] = s.channels[5]; }, true},
      {"the histogram is not", [](State& s) { s.histogram.merge(s.channels[0]); }, true},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto status = restored(cases[i].change, cases[i].channel_histograms);
    ASSERT_FALSE(status) << i;
    EXPECT_EQ(status.error().code, ErrorCode::bad_checkpoint);
    EXPECT_THAT(status.error().what, HasSubstr(cases[i].problem)) << i;
  }
}

}  // namespace
}  // namespace oasr::calib
