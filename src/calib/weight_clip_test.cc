#include "calib/weight_clip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/quantize/op.h"

namespace oasr::calib {
namespace {

using ::testing::HasSubstr;

std::vector<float> gaussian(std::size_t count, unsigned seed) {
  std::mt19937_64 engine(seed);
  std::vector<float> values(count);
  for (auto& value : values) {
    double sum = -6;  // of twelve uniform values
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(engine() >> 11) * 0x1p-53;
    value = static_cast<float>(sum / 10);
  }
  return values;
}

struct Clipped {
  ClippedRow row;
  std::vector<std::int8_t> codes;
};
Clipped clip(const std::vector<float>& w, const std::vector<double>& importance) {
  Clipped result;
  result.codes.resize(w.size());
  result.row = clip_row(w, importance, result.codes).value();
  return result;
}
Clipped round_to_nearest(const std::vector<float>& w) {
  Clipped result;
  result.codes.resize(w.size());
  const auto k = static_cast<std::int64_t>(w.size());
  EXPECT_FALSE(kernels::quantize_per_token_reference({.x = w.data(),
                                                      .ldx = k,
                                                      .m = 1,
                                                      .k = k,
                                                      .q = result.codes.data(),
                                                      .ldq = k,
                                                      .scale = &result.row.scale}));
  return result;
}

double loss(const std::vector<float>& w, const std::vector<double>& importance, const Clipped& clipped) {
  double sum = 0;
  for (std::size_t k = 0; k < w.size(); ++k) {
    const double error = w[k] - clipped.codes[k] * static_cast<double>(clipped.row.scale);
    sum += importance[k] * error * error;
  }
  return sum;
}

TEST(ClipRow, KeepsTheWholeRangeOfWhatOutweighsAllElse) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    auto w = gaussian(129, seed);
    w[5] = 1.7f + static_cast<float>(seed) / 100;
    std::vector<double> importance(w.size(), 1.0);
    importance[5] = 1e6;
    // Without a loss at all: every range is as good.
    for (const auto& weights : {importance, std::vector<double>(w.size(), 0.0)}) {
      const auto clipped = clip(w, weights);
      EXPECT_EQ(clipped.row.share, 1);
      EXPECT_EQ(clipped.row.scale, round_to_nearest(w).row.scale);
      EXPECT_EQ(clipped.codes, round_to_nearest(w).codes);
    }
  }
}

TEST(ClipRow, RoundsTiesToEven) {
  const auto clipped = clip({127.0f, 0.5f, 1.5f, -2.5f}, {1e6, 1, 1, 1});
  EXPECT_EQ(clipped.codes, (std::vector<std::int8_t>{127, 0, 2, -2}));
  EXPECT_EQ(clipped.row.scale, 1);
}

TEST(ClipRow, TakesTheRangeWithTheLeastLoss) {
  std::mt19937_64 engine(1);
  for (unsigned seed = 0; seed < 20; ++seed) {
    auto w = gaussian(200, seed);
    w[7] *= 3;
    std::vector<double> importance(w.size());
    for (auto& value : importance) value = static_cast<double>(engine() >> 40);
    importance[7] = 0;
    const auto clipped = clip(w, importance);
    const float amax = round_to_nearest(w).row.scale * 127;
    double least = INFINITY;
    for (int percent = 50; percent <= 100; ++percent) {
      // Codes by the rule, at a range that the row is cut to.
      const float range = static_cast<float>(percent) / 100 * amax;
      auto cut = w;
      for (auto& value : cut) value = std::clamp(value, -range, range);
      cut.push_back(range);
      auto candidate = round_to_nearest(cut);
      candidate.codes.pop_back();
      least = std::min(least, loss(w, importance, candidate));
    }
    // The ranges are the same but for the last bit of amax, which moves the loss by some 2⁻²³ of the row.
    EXPECT_NEAR(loss(w, importance, clipped), least, 1e-5 * least) << seed;
    EXPECT_LE(loss(w, importance, clipped), loss(w, importance, round_to_nearest(w)));
  }
}

TEST(ClipRow, CutsAnOutlierThatNoInputReaches) {
  std::vector<float> w = gaussian(256, 3);
  w[100] = 3.0f;
  std::vector<double> importance(w.size(), 1.0);
  importance[100] = 0;
  const auto clipped = clip(w, importance);
  EXPECT_LT(clipped.row.share, 0.55f);
  EXPECT_EQ(clipped.codes[100], 127);
  EXPECT_FLOAT_EQ(clipped.row.scale, clipped.row.share * 3.0f / 127);
}

TEST(ClipRow, RowsOfNothingHaveAScale) {
  for (const auto& w : {std::vector<float>(5, 0.0f), std::vector<float>(5, 1e-12f), std::vector<float>()}) {
    const auto clipped = clip(w, std::vector<double>(w.size(), 2.0));
    EXPECT_EQ(clipped.row.scale, kernels::kLeastAmax / 127);
    EXPECT_EQ(clipped.codes, std::vector<std::int8_t>(w.size(), 0));
  }
}

TEST(ClipRow, RefusesWhatIsNotFinite) {
  std::vector<std::int8_t> codes(2);
  const std::vector<double> importance(2, 1.0);
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    const auto row = clip_row(std::vector<float>{1.0f, bad}, importance, codes);
    ASSERT_FALSE(row);
    EXPECT_EQ(row.error().code, ErrorCode::bad_checkpoint);
    EXPECT_THAT(row.error().what, HasSubstr("NaN or infinity"));
  }
}

}  // namespace
}  // namespace oasr::calib
