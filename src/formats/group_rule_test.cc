#include "formats/group_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace oasr::formats {
namespace {

using testing::ElementsAre;

// rint(numerator / denominator) in integers: an opinion that no floating-point division has a part in.
int ratio(int numerator, int denominator) {
  int quotient = numerator / denominator, rest = numerator % denominator;
  if (rest < 0) {
    rest += denominator;
    --quotient;
  }
  const bool up = 2 * rest > denominator || (2 * rest == denominator && quotient % 2 != 0);
  return quotient + (up ? 1 : 0);
}

// The rules again, of values value / parts.
GroupParameters exact_parameters(const GroupRule& rule, int low, int high, int parts) {
  if (rule.widened) {
    low = std::min(low, 0);
    high = std::max(high, 0);
  }
  const int scale = std::max(1, ratio(high - low, kMostCode * parts));
  if (rule.domain == ZeroDomain::post_scaled) return {scale, std::clamp(ratio(-low, parts), -128, 127)};
  return {scale, std::clamp(ratio(-low, scale * parts), 0, kMostCode) * scale};
}

int exact_code(const GroupRule& rule, const GroupParameters& group, int value, int parts) {
  const int step = group.scale * parts;
  const int code = rule.zero_outside ? ratio(value, step) + group.scaled_zero / group.scale
                                     : ratio(value + group.scaled_zero * parts, step);
  return std::clamp(code, 0, kMostCode);
}

struct Extremes {
  double least = 999, most = -999;
  void add(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
};

TEST(TeachingRule, EveryGroupOfIntegersWithinTheBoundIsAnInt8) {
  int cases = 0;
  Extremes seen;
  std::set<int> scales;
  for (int low = -119; low <= 119; ++low) {
    for (int high = low; high <= 119; ++high) {
      const GroupParameters group = group_parameters(kTeachingRule, low, high);
      ASSERT_EQ(group, exact_parameters(kTeachingRule, low, high, 1)) << low << " " << high;
      scales.insert(group.scale);
      for (int value = low; value <= high; ++value, ++cases) {
        const auto code = static_cast<int>(group_code(kTeachingRule, group, value));
        ASSERT_EQ(code, exact_code(kTeachingRule, group, value, 1)) << low << " " << high << " " << value;
        seen.add(group.value(code));
      }
    }
  }
  EXPECT_EQ(cases, 2'303'960);
  EXPECT_EQ(*scales.begin(), 1);
  EXPECT_EQ(*scales.rbegin(), 16);
  EXPECT_GE(seen.least, -127);
  EXPECT_LE(seen.most, 127);
}

// Scale, zero and codes change at multiples of 1/2 only; eighths stand for all that lies between.
TEST(ProductRules, EveryGroupOfRealsWithinTheBoundIsAnInt8) {
  struct Case {
    GroupRule rule;
    int bound;
    double least, most;
  };
  for (const auto& [rule, bound, least, most] :
       {Case{kPreScaledRule, 119, -121, 121}, Case{kPostScaledRule, 120, -120, 127}}) {
    Extremes seen;
    for (int low = -bound * 8; low <= bound * 8; ++low) {
      for (int high = low; high <= bound * 8; ++high) {
        const GroupParameters group = group_parameters(rule, low / 8.0, high / 8.0);
        ASSERT_EQ(group, exact_parameters(rule, low, high, 8)) << low << " " << high;
        for (const int value : {low, high}) {
          const auto code = static_cast<int>(group_code(rule, group, value / 8.0));
          ASSERT_EQ(code, exact_code(rule, group, value, 8)) << low << " " << high << " " << value;
          seen.add(group.value(code));
        }
      }
    }
    EXPECT_EQ(seen.least, least);
    EXPECT_EQ(seen.most, most);
  }
}

TEST(ProtectiveBound, FollowsFromTheRuleAndItsLimits) {
  constexpr ByteLimits kSymmetric{.least = -127, .most = 127}, kWhole{.least = -128, .most = 127};
  GroupRule pre_outside = kPreScaledRule;
  pre_outside.zero_outside = true;
  EXPECT_EQ(protective_bound(kTeachingRule, kSymmetric), 119);
  EXPECT_EQ(protective_bound(kTeachingRule, kWhole), 119);
  EXPECT_EQ(protective_bound(kPreScaledRule, kSymmetric), 119);
  EXPECT_EQ(protective_bound(kPreScaledRule, kWhole), 120);
  EXPECT_EQ(protective_bound(pre_outside, kWhole), 119);
  EXPECT_EQ(protective_bound(kPostScaledRule, kSymmetric), 120);
  EXPECT_EQ(protective_bound(kPostScaledRule, kWhole), 120);
}

std::vector<double> restored(const GroupRule& rule, const GroupParameters& group,
                             std::vector<double> values) {
  for (double& value : values) value = group.value(group_code(rule, group, value));
  return values;
}

TEST(TeachingRule, WorkedGroupOfFourGivesItsCodes) {
  const GroupParameters group = group_parameters(kTeachingRule, -119, 119);
  EXPECT_EQ(group, (GroupParameters{.scale = 16, .scaled_zero = 7 * 16}));
  std::vector<double> codes;
  for (const double value : {-119, -40, 30, 119}) codes.push_back(group_code(kTeachingRule, group, value));
  EXPECT_THAT(codes, ElementsAre(0, 5, 9, 14));
  EXPECT_THAT(restored(kTeachingRule, group, {-119, -40, 30, 119}), ElementsAre(-112, -32, 32, 112));
}

TEST(TeachingRule, LosesANarrowPositiveGroupThatTheProductRulesKeep) {
  const auto decoded = [](const GroupRule& rule) {
    return restored(rule, group_parameters(rule, 100, 119), {100, 119});
  };
  EXPECT_THAT(decoded(kTeachingRule), ElementsAre(15, 15));
  EXPECT_THAT(decoded(kPreScaledRule), ElementsAre(96, 120));
  EXPECT_THAT(decoded(kPostScaledRule), ElementsAre(100, 115));
}

TEST(ZeroOutside, GivesAnotherCodeAtATie) {
  const GroupParameters group = group_parameters(kTeachingRule, -113, 120);
  EXPECT_EQ(group, (GroupParameters{.scale = 16, .scaled_zero = 7 * 16}));
  GroupRule inside = kTeachingRule;
  inside.zero_outside = false;
  EXPECT_THAT(restored(kTeachingRule, group, {120}), ElementsAre(128));
  EXPECT_THAT(restored(inside, group, {120}), ElementsAre(112));
}

}  // namespace
}  // namespace oasr::formats
