#include "formats/w4_weight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace oasr::formats {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();

// Two channels of two groups; the codes of channel 1, group 1 are all `code`.
W4Weight grouped(int code, int scale, int scaled_zero, ZeroDomain domain = ZeroDomain::pre_scaled) {
  W4Weight weight = W4Weight::sized(W4Form::per_group, domain, 2, 2 * kGroup);
  weight.channel_scale.assign(2, 0.5f);
  weight.group_scale.assign(4, 1);
  for (std::size_t k = 0; k < kGroup; ++k) weight.codes[3 * kGroup + k] = static_cast<std::uint8_t>(code);
  weight.group_scale[3] = static_cast<std::uint8_t>(scale);
  weight.scaled_zero[3] = static_cast<std::int16_t>(scaled_zero);
  return weight;
}

W4Weight with(W4Weight weight, const std::function<void(W4Weight&)>& change) {
  change(weight);
  return weight;
}

W4Weight channel(float scale, float zero, ZeroDomain domain = ZeroDomain::pre_scaled) {
  W4Weight weight = W4Weight::sized(W4Form::per_channel, domain, 1, 2);
  weight.codes = {2, 3};
  weight.channel_scale = {scale};
  weight.channel_zero = {zero};
  return weight;
}

TEST(Check, RefusesWhatBreaksARuleAndNamesTheRuleAndThePlace) {
  constexpr auto kPost = ZeroDomain::post_scaled;
  struct Case {
    const char* what;
    W4Weight weight;
    const char* rule;
    const char* where = "channel 1, group 1";
  };
  const Case cases[] = {
      {"15 · 16 - 0 = 240", grouped(15, 16, 0), "rule value: 15 · 16 - 0 = 240"},
      {"15 · 16 - 7 · 16 = 128", grouped(15, 16, 7 * 16), "rule value: 15 · 16 - 112 = 128"},
      {"0 · 16 - 15 · 16 = -240", grouped(0, 16, 15 * 16), "rule value: 0 · 16 - 240 = -240"},
      {"a post-scaled zero of -128", grouped(0, 1, -128, kPost), "rule value: 0 · 1 - -128 = 128"},
      {"15 · 18 does not fit a byte", grouped(15, 18, 10 * 18), "rule product: 15 · 18"},
      {"a scale of zero", grouped(0, 0, 0), "rule group_scale: 0"},
      {"a negative byte as a scale", grouped(0, -1, 0), "rule group_scale: 255"},
      {"a zero that is no code times the scale", grouped(3, 4, 10), "rule zero: 10 at scale 4"},
      {"a zero of code 16", grouped(15, 4, 64), "rule zero: 64 at scale 4"},
      {"a negative zero of a code", grouped(3, 4, -4), "rule zero: -4 at scale 4"},
      {"a post-scaled zero beyond int8", grouped(12, 16, 128, kPost), "rule zero: 128 at scale 16"},
      {"a code of 16", grouped(16, 1, 0), "rule code: 16"},
      {"a scale of NaN", with(grouped(0, 1, 0), [](auto& w) { w.channel_scale[1] = NAN; }),
       "rule channel_scale", "channel 1"},
      {"an infinite scale", with(grouped(0, 1, 0), [](auto& w) { w.channel_scale[1] = kInf; }),
       "rule channel_scale", "channel 1"},
      {"a channel scale of zero", with(grouped(0, 1, 0), [](auto& w) { w.channel_scale[1] = 0; }),
       "rule channel_scale", "channel 1"},
      {"a negative scale", with(grouped(0, 1, 0), [](auto& w) { w.channel_scale[1] = -1; }),
       "rule channel_scale", "channel 1"},
      {"a scale that is no float16", with(grouped(0, 1, 0), [](auto& w) { w.channel_scale[1] = 0.1f; }),
       "rule channel_scale", "channel 1"},
      {"scales of another group size", with(grouped(0, 1, 0), [](auto& w) { w.group_scale.resize(8, 1); }),
       "rule sizes", ""},
      {"a zero between two codes", channel(0.5f, 0.75f), "rule channel_zero", "channel 0"},
      {"a zero of code 16 per channel", channel(0.5f, 8), "rule channel_zero", "channel 0"},
      {"a negative zero per channel", channel(0.5f, -0.5f), "rule channel_zero", "channel 0"},
      {"a zero that is no float16", channel(0.5f, 0.1f, kPost), "rule channel_zero", "channel 0"},
      {"a zero of NaN", channel(0.5f, NAN), "rule channel_zero", "channel 0"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    const Status status = check(c.weight);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::bad_checkpoint);
    EXPECT_THAT(status.error().what, HasSubstr(c.rule));
    EXPECT_EQ(status.error().where, c.where);
  }
}

TEST(Check, AcceptsTheEdgesOfEveryRule) {
  constexpr auto kPost = ZeroDomain::post_scaled;
  for (const W4Weight& weight :
       {grouped(15, 16, 8 * 16), grouped(0, 16, 8 * 16), grouped(15, 17, 8 * 17), grouped(1, 127, 0),
        grouped(2, 127, 127), grouped(15, 1, 0), grouped(0, 1, -127, kPost), grouped(0, 1, 127, kPost),
        channel(0.5f, 7.5f), channel(0.5f, 0), channel(0.5f, -3.25f, kPost)}) {
    EXPECT_TRUE(check(weight)) << check(weight).error().message();
  }
}

TEST(Check, OfAllCodesAlsoAsksThoseThatDoNotOccur) {
  const W4Weight weight = grouped(14, 16, 7 * 16);
  EXPECT_TRUE(check(weight));
  const Status status = check(weight, CodeSet::all);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().what, HasSubstr("rule value: 15 · 16 - 112 = 128"));
  EXPECT_TRUE(check(grouped(14, 16, 8 * 16), CodeSet::all));
}

TEST(Check, RefusesShapesThatNoFormHas) {
  EXPECT_TRUE(check_shape(W4Form::per_group, 1, 128));
  EXPECT_TRUE(check_shape(W4Form::per_channel, 1, 100));
  EXPECT_TRUE(check_shape(W4Form::per_channel, 1, kMostColumns));
  for (const auto& [form, k] : {std::pair(W4Form::per_group, 100), std::pair(W4Form::per_group, 0),
                                std::pair(W4Form::per_channel, 131072), std::pair(W4Form::per_channel, -1)}) {
    const Status status = check_shape(form, 1, k);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::unsupported);
    EXPECT_THAT(status.error().what, HasSubstr("K is at most 131071"));
  }
}

// 131071 columns of int8 · int8 fill int32. 65793, where weights that are shifted to be unsigned would, is no
// bound: products add up modulo 2³².
TEST(Check, TheGreatestColumnsOfEitherFormAreServedAndTheNextAreNot) {
  for (const std::int64_t k : {65792, 65793, 65794, 131071}) EXPECT_TRUE(check_shape(W4Form::per_channel, 1, k)) << k;
  for (const std::int64_t k : {65792, 65920, 130944}) EXPECT_TRUE(check_shape(W4Form::per_group, 1, k)) << k;
  for (const W4Form form : {W4Form::per_group, W4Form::per_channel}) {
    const Status status = check_shape(form, 1, 131072);  // a multiple of 128
    ASSERT_FALSE(status);
    EXPECT_THAT(status.error().what, HasSubstr("a weight [1, 131072] has no 4-bit form"));
  }
  EXPECT_FALSE(check_shape(W4Form::per_group, 1, 65793));
}

TEST(Decode, IsCodeTimesScaleLessZeroTimesTheChannelsScale) {
  W4Weight weight = grouped(5, 16, 7 * 16);
  std::vector<std::int8_t> w8(2 * kGroup);
  std::vector<float> w(2 * kGroup);
  decode_row(weight, 1, std::span(w8));
  decode_row(weight, 1, std::span(w));
  EXPECT_EQ(w8.front(), 0);
  EXPECT_EQ(w8.back(), -32);
  EXPECT_EQ(w.back(), -16.0f);
}

// [0.25, 0.25 …] activations are codes [2, -1, 3, 4] at scale 0.25.
TEST(Decode, WorkedProductOfFourIs0Point88) {
  W4Weight weight = W4Weight::sized(W4Form::per_group, ZeroDomain::pre_scaled, 1, kGroup);
  const std::uint8_t codes[] = {0, 5, 9, 14};
  std::fill(weight.codes.begin(), weight.codes.end(), 7);  // decodes to 0
  std::copy(std::begin(codes), std::end(codes), weight.codes.begin());
  weight.channel_scale = {1};
  weight.group_scale = {16};
  weight.scaled_zero = {7 * 16};
  ASSERT_TRUE(check(weight));
  std::vector<std::int8_t> w8(kGroup);
  decode_row(weight, 0, std::span(w8));
  const int a[] = {2, -1, 3, 4};
  int sum = 0;
  for (std::size_t k = 0; k < 4; ++k) sum += a[k] * w8[k];
  EXPECT_EQ(sum, 352);
  EXPECT_DOUBLE_EQ(sum * 0.25 * 0.01, 0.88);
}

// The sum of what was quantized, not of what it was before: 5/16, not 7/20.
TEST(Decode, PerChannelZeroGoesWithTheQuantizedInput) {
  const W4Weight weight = channel(0.5f, 0.5f);
  ASSERT_TRUE(check(weight));
  EXPECT_EQ(zero_code(weight, 0), 1);
  std::vector<std::int8_t> levels(2);
  std::vector<float> w(2);
  decode_row(weight, 0, std::span(levels));
  decode_row(weight, 0, std::span(w));
  EXPECT_THAT(levels, ElementsAre(1, 2));
  EXPECT_EQ(0.125 * w[0] + 0.25 * w[1], 5.0 / 16);
  const double codes = 0.125 * weight.codes[0] + 0.25 * weight.codes[1];
  EXPECT_EQ(weight.channel_scale[0] * codes - weight.channel_zero[0] * (0.125 + 0.25), 5.0 / 16);
  EXPECT_DOUBLE_EQ(weight.channel_scale[0] * codes - weight.channel_zero[0] * (0.1 + 0.2), 7.0 / 20);
}

TEST(Decode, GroupScalesStayInsideTheSum) {
  W4Weight weight = W4Weight::sized(W4Form::per_group, ZeroDomain::pre_scaled, 1, 2 * kGroup);
  weight.channel_scale = {1};
  weight.group_scale = {2, 3};
  weight.codes[0] = weight.codes[kGroup] = 1;
  std::vector<float> w(2 * kGroup);
  decode_row(weight, 0, std::span(w));
  EXPECT_EQ(1 * w[0] + 2 * w[kGroup], 8);  // not 2 · (1 + 2) = 6
}

TEST(Names, EveryValueHasOne) {
  EXPECT_EQ(w4_form_names().size(), 2u);
  EXPECT_EQ(zero_domain_names().size(), 2u);
  EXPECT_EQ(w4_rule_names().size(), 8u);
  EXPECT_EQ(parse_enum(zero_domain_names(), "post_scaled"), ZeroDomain::post_scaled);
}

}  // namespace
}  // namespace oasr::formats
