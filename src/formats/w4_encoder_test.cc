#include "formats/w4_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "formats/group_rule.h"
#include "formats/testing.h"
#include "tensor/dtype.h"

namespace oasr::formats {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr std::int64_t kRows = 6, kColumns = 2 * kGroup;

std::vector<W4Options> every_option() {
  std::vector<W4Options> options;
  for (const bool search : {false, true}) {
    options.push_back({.form = W4Form::per_group, .domain = ZeroDomain::pre_scaled, .search = search});
    options.push_back({.form = W4Form::per_group, .domain = ZeroDomain::post_scaled, .search = search});
    options.push_back({.form = W4Form::per_channel, .domain = ZeroDomain::pre_scaled, .search = search});
  }
  return options;
}

// Values with heavy tails, as weights have: (a - b) · c of integers, so that every machine draws the same.
std::vector<float> heavy_tails(std::size_t count, unsigned seed = 7) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    const auto a = static_cast<int>(random() % 1024), b = static_cast<int>(random() % 1024);
    const auto c = static_cast<int>(random() % 64);
    value = static_cast<float>((a - b) * c * c) * 0x1p-24f;
  }
  return values;
}

W4Weight encoded(const std::vector<float>& values, std::int64_t k, const W4Options& options,
                 std::span<const double> importance = {}) {
  auto weight =
      encode(static_cast<std::int64_t>(values.size()) / k, k, rows_of(values, k), options, importance);
  EXPECT_TRUE(weight) << weight.error().message();
  return std::move(weight).value();
}

double loss(const W4Weight& weight, const std::vector<float>& values,
            std::span<const double> importance = {}) {
  const std::vector<float> found = decoded(weight);
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double error = values[i] - found[i];
    sum += (importance.empty() ? 1 : importance[i % static_cast<std::size_t>(weight.k)]) * error * error;
  }
  return sum;
}

TEST(Encode, WeightsKeepEveryRule) {
  const std::vector<float> values = heavy_tails(kRows * kColumns);
  for (const W4Options& options : every_option()) {
    const W4Weight weight = encoded(values, kColumns, options);
    EXPECT_TRUE(check(weight)) << check(weight).error().message();
  }
}

// The farthest that a value of one group may come back from where it was, without a search, in numbers. In
// units of the channel's scale: half a step of the group's scale, for a code in the range or for the zero
// that moves the range; what 15 steps are short of the range, since the scale was rounded; 120 · 2⁻¹¹, since
// the channel's was. Per channel a step is 1, and the range is 15 within 2⁻¹¹.
double error_bound(const W4Weight& weight, const W4Options& options, double low, double high) {
  const double unit = weight.channel_scale[0];
  if (options.form == W4Form::per_channel) return 1.01 * unit;
  if (options.domain == ZeroDomain::pre_scaled) {
    low = std::min(low, 0.0);
    high = std::max(high, 0.0);
  }
  const double step = weight.group_scale[0];
  return (std::max(0.0, (high - low) / unit - kMostCode * step) + step / 2 + 120 * 0x1p-11) * unit;
}

TEST(Encode, WholeRangesOfEveryKindComeBackWithinHalfAStep) {
  struct Case {
    const char* what;
    float first, second;  // of the columns in turn
  };
  for (const Case& c :
       {Case{"zero", 0, 0}, Case{"constant", 0.3f, 0.3f}, Case{"negative constant", -0.3f, -0.3f},
        Case{"all positive", 0.25f, 0.3f}, Case{"all negative", -0.3f, -0.25f}, Case{"both", -0.1f, 0.3f},
        Case{"below the least float16", 1e-9f, -1e-9f}}) {
    std::vector<float> values(kColumns);
    for (std::size_t k = 0; k < values.size(); ++k) values[k] = k % 2 == 0 ? c.first : c.second;
    for (W4Options options : every_option()) {
      SCOPED_TRACE(c.what);
      const W4Weight weight = encoded(values, kColumns, options);
      ASSERT_TRUE(check(weight)) << check(weight).error().message();
      if (options.search) {
        options.search = false;
        EXPECT_LE(loss(weight, values), loss(encoded(values, kColumns, options), values));
        continue;
      }
      const double bound =
          error_bound(weight, options, std::min(c.first, c.second), std::max(c.first, c.second));
      const std::vector<float> found = decoded(weight);
      for (std::size_t k = 0; k < values.size(); ++k) EXPECT_LE(std::fabs(found[k] - values[k]), bound) << k;
      if (c.first == 0 && c.second == 0) {
        EXPECT_THAT(found, Each(0.0f));
      }
      // A constant, or a range of one sign that holds zero, costs half a step and nothing else.
      if (c.first == c.second && options.form == W4Form::per_group) {
        EXPECT_LE(bound, (weight.group_scale[0] / 2.0 + 0.06) * weight.channel_scale[0]);
      }
    }
  }
}

TEST(Encode, ChannelScaleIsTheNearestFloat16OfTheProtectedRange) {
  std::vector<float> values(kGroup, 0.0f);
  values[5] = -0.7f;
  for (const auto domain : {ZeroDomain::pre_scaled, ZeroDomain::post_scaled}) {
    const W4Weight weight = encoded(values, kGroup, {.form = W4Form::per_group, .domain = domain});
    const float bound = domain == ZeroDomain::pre_scaled ? 119 : 120;
    EXPECT_EQ(weight.channel_scale[0], to_float(to_half(0.7f / bound)));
  }
  const W4Weight weight = encoded(values, kGroup, {.form = W4Form::per_channel, .search = false});
  EXPECT_EQ(weight.channel_scale[0], to_float(to_half(0.7f / 15)));
  EXPECT_EQ(zero_code(weight, 0), 15);
}

// The parameters and codes of the first group are those of the share that loses the least, by the rule
// itself.
TEST(Encode, SearchTakesTheShareOfTheRangeThatLosesTheLeast) {
  std::vector<float> values(kGroup);
  std::vector<double> importance(kGroup);
  for (std::size_t k = 0; k < kGroup; ++k) {
    values[k] = static_cast<float>(static_cast<int>(k * 37 % 101) - 50);
    importance[k] = static_cast<double>(k % 7);
  }
  values[7] = 110;  // the ends of the range are of no importance: half of it is best
  values[14] = -110;
  for (const auto domain : {ZeroDomain::pre_scaled, ZeroDomain::post_scaled}) {
    const W4Weight weight = encoded(values, kGroup, {.domain = domain}, importance);
    const GroupRule& rule = group_rule(domain);
    const double scale = weight.channel_scale[0];
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    double least = std::numeric_limits<double>::infinity();
    for (int percent = 100; percent >= 50; --percent) {
      const double share = percent / 100.0;
      const GroupParameters group = group_parameters(rule, share * *low / scale, share * *high / scale);
      double sum = 0;
      for (std::size_t k = 0; k < kGroup; ++k) {
        const double error = values[k] - scale * group.value(group_code(rule, group, values[k] / scale));
        sum += importance[k] * error * error;
      }
      least = std::min(least, sum);
    }
    // Decoding rounds 128 values to float32, and the search cuts values at the bound.
    EXPECT_NEAR(loss(weight, values, importance), least, 1e-3 * least);
  }
}

TEST(Encode, SearchLosesLessAndLeastWhereItMatters) {
  const std::vector<float> values = heavy_tails(kRows * kColumns);
  std::vector<double> importance(kColumns, 1.0);
  for (std::size_t k = kGroup; k < kColumns; k += 16) importance[k] = 100;
  for (W4Options options : every_option()) {
    if (!options.search) continue;
    const W4Weight searched = encoded(values, kColumns, options),
                   weighted = encoded(values, kColumns, options, importance);
    options.search = false;
    EXPECT_LT(loss(searched, values), loss(encoded(values, kColumns, options), values));
    EXPECT_LT(loss(weighted, values, importance), loss(searched, values, importance));
    EXPECT_GE(loss(weighted, values), loss(searched, values));
  }
}

TEST(Encode, ImportanceOfOneIsNoImportance) {
  const std::vector<float> values = heavy_tails(kRows * kColumns);
  const std::vector<double> ones(kColumns, 1.0);
  for (const W4Options& options : every_option()) {
    EXPECT_EQ(encoded(values, kColumns, options, ones), encoded(values, kColumns, options));
  }
}

// FNV-1a of codes, scales and zeros.
TEST(Encode, GivesTheSameBitsOnEveryMachine) {
  const std::uint64_t expected[] = {18278524791292691364u, 9491877131661661572u,  12326090010982512531u,
                                    1769548436513658786u,  11697789609250734686u, 15005315650809986549u};
  const std::vector<float> values = heavy_tails(kRows * kColumns);
  std::size_t i = 0;
  for (const W4Options& options : every_option()) {
    const W4Weight weight = encoded(values, kColumns, options);
    std::uint64_t hash = 0xcbf29ce484222325u;
    const auto add = [&hash](const auto& numbers) {
      for (const auto number : numbers)
        hash = (hash ^ static_cast<std::uint64_t>(static_cast<std::int64_t>(number))) * 0x100000001b3u;
    };
    add(weight.codes);
    add(weight.group_scale);
    add(weight.scaled_zero);
    for (const float scale : weight.channel_scale) add(std::vector<int>{to_half(scale).bits});
    for (const float zero : weight.channel_zero) add(std::vector<int>{to_half(zero).bits});
    EXPECT_EQ(hash, expected[i++]) << i;
  }
}

TEST(Encode, RefusesRowsThatAreNotFiniteOrTooGreatByTheirNumber) {
  struct Case {
    float value;
    const char* what;
  };
  for (const Case& c :
       {Case{NAN, "row 3 of the weight holds NaN"}, Case{-INFINITY, "row 3 of the weight holds NaN"},
        Case{3e38f, "row 3 of the weight is too great"}, Case{-8e6f, "row 3 of the weight is too great"}}) {
    std::vector<float> values = heavy_tails(kRows * kColumns);
    values[3 * kColumns + 17] = c.value;
    for (const W4Options& options : every_option()) {
      const auto weight = encode(kRows, kColumns, rows_of(values, kColumns), options);
      ASSERT_FALSE(weight);
      EXPECT_EQ(weight.error().code, ErrorCode::bad_checkpoint);
      EXPECT_THAT(weight.error().what, HasSubstr(c.what));
    }
  }
}

TEST(Encode, RefusesColumnsThatAreNoGroups) {
  const std::vector<float> values(100);
  const auto weight = encode(1, 100, rows_of(values, 100));
  ASSERT_FALSE(weight);
  EXPECT_EQ(weight.error().code, ErrorCode::unsupported);
  EXPECT_THAT(weight.error().what, HasSubstr("[1, 100]"));
  EXPECT_TRUE(encode(1, 100, rows_of(values, 100), {.form = W4Form::per_channel}));
}

}  // namespace
}  // namespace oasr::formats
