#include "decode/scores.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "decode/random.h"

namespace oasr::decode {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

std::vector<float> random_row(std::size_t size, std::uint64_t seed, double spread) {
  std::vector<float> row(size);
  for (std::size_t i = 0; i < size; ++i) {
    const auto step = static_cast<std::uint32_t>(i);
    row[i] = static_cast<float>((uniform({seed, 0, 0, 0, step}) * 2 - 1) * spread);
  }
  return row;
}

TEST(LogSumExp, AgreesWithDoublesWithinFloat32Rounding) {
  for (const std::size_t size : {1u, 7u, 8u, 63u, 64u, 65u, 1501u, 51865u}) {
    auto row = random_row(size, size, 20);
    if (size > 8) row[3] = kMasked;
    double sum = 0;
    for (const float x : row) sum += std::exp(double{x} - 20);
    const double expected = 20 + std::log(sum);
    // Half an ulp of the result's float32 plus the exp polynomial's relative error.
    EXPECT_NEAR(log_sum_exp(row), expected, std::abs(expected) * 6e-8 + 3e-7) << size;
  }
}

TEST(LogSumExp, OfTwoLogitsIsTheLogisticLoss) {
  for (int i = 0; i <= 2000; ++i) {
    const float x = static_cast<float>(i) * 0.01f;
    // The exp's 3e-7 of e^-x, half an ulp of the float32 sum and of the result.
    const double bound = 3e-7 * std::exp(-x) + 1.2e-7;
    EXPECT_NEAR(log_sum_exp(std::vector<float>{0.0f, -x}), std::log1p(std::exp(-double{x})), bound);
  }
}

TEST(LogSumExp, OfMaskedLogitsIsMinusInfinity) {
  EXPECT_EQ(log_sum_exp(std::vector<float>(9, kMasked)), kMasked);
  EXPECT_EQ(log_sum_exp({}), kMasked);
}

TEST(LogSoftmax, TakesTheLogSumExpOffEveryNumber) {
  for (const std::size_t size : {1u, 7u, 64u, 1501u}) {
    const std::vector<float> x = random_row(size, size, 20);
    std::vector<float> p = x;
    const float norm = log_softmax(p);
    EXPECT_EQ(norm, log_sum_exp(x));
    for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(p[i], x[i] - norm) << size << ", " << i;
  }
}

TEST(LogSoftmax, LeavesARowThatIsNotFinite) {
  for (const float bad : {kMasked, -kMasked, std::numeric_limits<float>::quiet_NaN()}) {
    for (const std::size_t at : {0u, 13u, 39u}) {
      std::vector<float> row(40, 1.0f);
      EXPECT_TRUE(all_finite(row));
      row[at] = bad;
      EXPECT_FALSE(all_finite(row)) << bad << ", " << at;
      EXPECT_TRUE(std::isnan(log_softmax(row)));
      EXPECT_EQ(row[at == 0 ? 1 : 0], 1.0f);
    }
  }
  // Finite before, not after.
  std::vector<float> far = {3e38f, -3e38f};
  EXPECT_TRUE(std::isnan(log_softmax(far)));
}

TEST(ArgMax, TakesTheLowestIdAmongEquals) {
  std::vector<float> row(40, 1.0f);
  row[9] = row[17] = row[33] = 2.0f;
  EXPECT_EQ(arg_max(row), 9);
}

TEST(TopK, EqualsAStableSort) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto row = random_row(100, seed, 4);
    for (float& x : row) x = std::nearbyint(x);  // many equals
    row[5] = kMasked;
    std::vector<ScoredToken> expected;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (row[i] > kMasked) expected.push_back({static_cast<TokenId>(i), row[i]});
    }
    std::stable_sort(expected.begin(), expected.end(),
                     [](auto& a, auto& b) { return a.logit > b.logit; });
    std::vector<ScoredToken> best;
    top_k(row, 6, best);
    ASSERT_EQ(best.size(), 6u);
    for (std::size_t i = 0; i < best.size(); ++i) EXPECT_EQ(best[i].token, expected[i].token);
  }
}

TEST(TopK, LeavesMaskedLogitsOut) {
  std::vector<ScoredToken> best;
  top_k(std::vector<float>{kMasked, 1.0f, kMasked, 3.0f}, 3, best);
  ASSERT_EQ(best.size(), 2u);
  EXPECT_EQ(best[0].token, 3);
  EXPECT_EQ(best[1].token, 1);
}

TEST(Sample, FollowsTheSoftmaxAtTheTemperature) {
  const std::vector<float> row{0.0f, 1.0f, kMasked, -1.0f};
  constexpr float kTemperature = 0.5f;
  std::vector<int> counts(4, 0);
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i)
    ++counts[static_cast<std::size_t>(sample(row, kTemperature, (i + 0.5) / kDraws))];
  const double total = 1 + std::exp(2.0) + std::exp(-2.0);
  // Evenly spread uniforms: the counts are exact to one draw.
  EXPECT_NEAR(counts[0], kDraws / total, 1.5);
  EXPECT_NEAR(counts[1], kDraws * std::exp(2.0) / total, 1.5);
  EXPECT_EQ(counts[2], 0);
  EXPECT_NEAR(counts[3], kDraws * std::exp(-2.0) / total, 1.5);
}

TEST(Sample, NeverGivesAMaskedTokenAtTheEnds) {
  std::vector<float> row(200, kMasked);
  row[70] = 0.5f;
  row[150] = 0.25f;
  EXPECT_EQ(sample(row, 1.0f, 0.0), 70);
  EXPECT_EQ(sample(row, 1.0f, std::nextafter(1.0, 0.0)), 150);
}

TEST(Random, IsAFunctionOfItsKeyAlone) {
  const RandomKey key{7, 1, 2, 3, 4};
  EXPECT_EQ(uniform(key), uniform(key));
  for (const RandomKey& other :
       {RandomKey{8, 1, 2, 3, 4}, RandomKey{7, 2, 2, 3, 4}, RandomKey{7, 1, 3, 3, 4},
        RandomKey{7, 1, 2, 4, 4}, RandomKey{7, 1, 2, 3, 5}, RandomKey{7, 2, 1, 3, 4},
        RandomKey{7, 1, 2, 4, 3}}) {
    EXPECT_NE(uniform(key), uniform(other));
  }
}

TEST(Random, IsSpreadEvenly) {
  double sum = 0, squares = 0;
  constexpr int kDraws = 100000;
  for (std::uint32_t i = 0; i < kDraws; ++i) {
    const double u = uniform({1, i / 1000, 0, 0, i % 1000});
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
    squares += u * u;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 5 * std::sqrt(1.0 / 12 / kDraws));
  EXPECT_NEAR(squares / kDraws, 1.0 / 3, 5 * std::sqrt(4.0 / 45 / kDraws));
}

}  // namespace
}  // namespace oasr::decode
