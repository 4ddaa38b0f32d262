#include "eval/bootstrap.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace oasr::eval {
namespace {

Interval interval(const std::vector<Share>& shares, int resamples = 2000, std::uint64_t seed = 1) {
  const std::vector<std::vector<Share>> one = {shares};
  return intervals(one, resamples, seed)[0];
}

TEST(Bootstrap, TheSameSeedGivesTheSameInterval) {
  const std::vector<Share> shares = {{1, 10}, {0, 7}, {3, 9}, {2, 12}, {0, 5}};
  EXPECT_EQ(interval(shares).low, interval(shares).low);
  EXPECT_EQ(interval(shares).high, interval(shares).high);
  // 50 draws and other numbers: one of the two ends moves.
  const auto a = interval(shares, 50, 1), b = interval(shares, 50, 2);
  EXPECT_TRUE(a.low != b.low || a.high != b.high);
}

TEST(Bootstrap, UtterancesAllAlikeLeaveNoDoubt) {
  const std::vector<Share> shares(30, Share{1, 20});
  EXPECT_EQ(interval(shares).low, 5.0);
  EXPECT_EQ(interval(shares).high, 5.0);
}

TEST(Bootstrap, TwoUtterancesCanBeDrawnAsEitherTwice) {
  // One of four draws takes the first twice, one the second: both ends are reached.
  const std::vector<Share> shares = {{0, 10}, {10, 10}};
  EXPECT_EQ(interval(shares).low, 0.0);
  EXPECT_EQ(interval(shares).high, 100.0);
}

TEST(Bootstrap, TheIntervalIsThatOfTheNormalApproximationForManyUtterances) {
  // Errors of 1000 utterances of 10 words each are independent with variance v: the rate has the
  // standard deviation s = sqrt(v / 1000) / 10. The ends of 10000 resamples lie at 1.96 s; their
  // own deviation is sqrt(0.025 · 0.975 / 10000) / density(1.96) = 0.027 s, five of which are 0.14
  // s.
  std::mt19937 random(3);
  std::vector<Share> shares;
  double sum = 0, squares = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t errors = random() % 5;
    shares.push_back({errors, 10});
    sum += static_cast<double>(errors);
    squares += static_cast<double>(errors * errors);
  }
  const double mean = sum / 1000, deviation = std::sqrt(squares / 1000 - mean * mean);
  const double s = 100 * deviation / std::sqrt(1000.0) / 10;
  const auto found = interval(shares, 10000);
  EXPECT_NEAR(*found.low, 10 * mean - 1.96 * s, 0.14 * s);
  EXPECT_NEAR(*found.high, 10 * mean + 1.96 * s, 0.14 * s);
}

TEST(Bootstrap, WithoutReferencesThereIsNoInterval) {
  EXPECT_FALSE(interval({{2, 0}, {1, 0}}).low);
  EXPECT_FALSE(interval({}).low);
}

TEST(PairedBootstrap, EqualResultsDoNotDiffer) {
  const std::vector<Share> shares = {{1, 10}, {0, 7}, {3, 9}};
  const auto found = paired_interval(shares, shares, 1000, 1);
  EXPECT_EQ(found.low, 0.0);
  EXPECT_EQ(found.high, 0.0);
  EXPECT_EQ(found.p, 1.0);
}

TEST(PairedBootstrap, AConstantDifferenceIsCertainHoweverMuchUtterancesVary) {
  std::vector<Share> a, b;
  for (std::int64_t i = 0; i < 50; ++i) {
    a.push_back({i, 100});
    b.push_back({i + 1, 100});
  }
  const auto found = paired_interval(a, b, 1000, 1);
  EXPECT_NEAR(*found.low, 1.0,
              1e-9);  // points; rates of at most 51 % as doubles are exact to 1e-14
  EXPECT_NEAR(*found.high, 1.0, 1e-9);
  EXPECT_EQ(found.p, 0.0);
}

}  // namespace
}  // namespace oasr::eval
