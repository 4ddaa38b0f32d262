#include "formats/w4_import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "formats/testing.h"
#include "tensor/dtype.h"

namespace oasr::formats {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto kPre = ZeroDomain::pre_scaled, kPost = ZeroDomain::post_scaled;
constexpr std::int64_t kN = 32, kK = 2 * kGroup;

// What a calibrator would write of a weight.
struct Exported {
  W4Weight weight;
  std::vector<float> values, group_scale, zero;

  explicit Exported(const W4Weight& from) : weight(from), values(decoded(from)), zero(from.channel_zero) {
    for (float& value : values) value = to_float(to_half(value));
    for (std::size_t i = 0; i < weight.group_scale.size(); ++i) {
      const float scale = weight.group_scale[i];
      group_scale.push_back(scale);
      zero.push_back(weight.domain == kPre ? weight.scaled_zero[i] / scale : weight.scaled_zero[i]);
    }
    if (weight.form == W4Form::per_channel && weight.domain == kPre) {
      for (std::size_t n = 0; n < zero.size(); ++n) zero[n] /= weight.channel_scale[n];
    }
  }

  FakeQuantWeight view() const {
    return {.form = weight.form,
            .domain = weight.domain,
            .n = weight.n,
            .k = weight.k,
            .weight = values,
            .channel_scale = weight.channel_scale,
            .group_scale = group_scale,
            .zero = zero};
  }
};

TEST(Recover, FindsTheCodesOfEveryFormAndDomain) {
  unsigned seed = 10;
  for (const W4Form form : {W4Form::per_group, W4Form::per_channel}) {
    for (const ZeroDomain domain : {kPre, kPost}) {
      const Exported exported(random_weight(form, domain, kN, kK, ++seed));
      const auto found = recover(exported.view());
      ASSERT_TRUE(found) << found.error().message();
      EXPECT_EQ(*found, exported.weight);
    }
  }
}

TEST(Recover, MovesCodesThatCountFromMinusEight) {
  Exported pre(random_weight(W4Form::per_group, kPre, kN, kK));
  for (float& zero : pre.zero) zero -= 8;
  EXPECT_EQ(recover(pre.view()).value(), pre.weight);

  Exported channel(random_weight(W4Form::per_channel, kPre, kN, kK));
  for (float& zero : channel.zero) zero -= 8;
  EXPECT_EQ(recover(channel.view()).value(), channel.weight);

  Exported post(random_weight(W4Form::per_group, kPost, kN, kK));
  for (std::size_t i = 0; i < post.zero.size(); ++i) post.zero[i] -= 8 * post.group_scale[i];
  EXPECT_EQ(recover(post.view()).value(), post.weight);
}

TEST(Recover, TakesNegativeZerosOfAllPositiveGroups) {
  W4Weight weight = random_weight(W4Form::per_group, kPost, kN, kK);
  weight.group_scale.assign(weight.group_scale.size(), 1);
  weight.scaled_zero.assign(weight.scaled_zero.size(), -100);
  EXPECT_EQ(recover(Exported(weight).view()).value(), weight);
}

TEST(Recover, RefusesWhatIsNoIntegerAndNamesThePlace) {
  using Change = void (*)(Exported&);
  struct Case {
    const char* what;
    W4Form form;
    ZeroDomain domain;
    Change change;
    const char* message;
  };
  constexpr auto kGrouped = W4Form::per_group, kChannel = W4Form::per_channel;
  const Case cases[] = {
      {"a weight between two values", kGrouped, kPre,
       [](Exported& e) { e.values[3 * kK + 200] += 0.4f * e.weight.channel_scale[3]; },
       "channel 3, column 200: the value"},
      {"a weight between two codes", kGrouped, kPost,
       [](Exported& e) {
         e.group_scale[7] = 16;
         e.zero[7] = 100;
       },
       "channel 3, column "},
      {"a zero between two codes", kGrouped, kPre, [](Exported& e) { e.zero[2] += 0.002f; },
       "channel 1, group 0: the zero"},
      {"a fractional scale", kGrouped, kPost, [](Exported& e) { e.group_scale[2] += 0.002f; },
       "channel 1, group 0: the group scale"},
      {"a scale of zero", kGrouped, kPost, [](Exported& e) { e.group_scale[2] = 0; },
       "channel 1, group 0: the group scale 0 is outside"},
      {"a scale of NaN", kGrouped, kPost, [](Exported& e) { e.group_scale[2] = NAN; }, "the group scale nan"},
      {"a weight of NaN", kGrouped, kPre, [](Exported& e) { e.values[5] = NAN; },
       "channel 0, column 5: the value nan"},
      {"a channel scale of zero", kGrouped, kPre, [](Exported& e) { e.weight.channel_scale[4] = 0; },
       "channel 4"},
      {"a weight beyond the codes", kChannel, kPre,
       [](Exported& e) { e.values[kK + 1] = 40 * e.weight.channel_scale[1]; }, "channel 1, column 1: "},
      {"a weight between two codes per channel", kChannel, kPost,
       [](Exported& e) { e.values[kK + 1] += 0.3f * e.weight.channel_scale[1]; },
       "channel 1, column 1: the code"},
      {"scales of another group size", kGrouped, kPre, [](Exported& e) { e.group_scale.resize(4 * kN, 1); },
       "128 group scales"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    Exported exported(random_weight(c.form, c.domain, kN, kK, 3));
    c.change(exported);
    const auto found = recover(exported.view());
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, ErrorCode::bad_checkpoint);
    EXPECT_THAT(found.error().message(), HasSubstr(c.message));
  }
}

// A residue of 10⁻³ is the limit, and what float16 numbers of the size of the quotient explain comes on top.
TEST(Recover, TakesAResidueJustUnderTheLimitAndRefusesOneJustOver) {
  struct Pair {
    const char* what;
    void (*change)(Exported&, float residue);
    float under, over;
  };
  const Pair pairs[] = {
      {"a group scale", [](Exported& e, float residue) { e.group_scale[2] += residue; }, 0.00099f, 0.00101f},
      {"a zero", [](Exported& e, float residue) { e.zero[2] -= residue; }, 0.00099f, 0.00101f},
      {"a value of 0",
       [](Exported& e, float residue) { e.values[kK + 5] = residue * e.weight.channel_scale[1]; }, 0.00099f,
       0.00102f},
      {"a value of 4",  // 4 · 2⁻¹⁰ more
       [](Exported& e, float residue) { e.values[kK + 5] = (4 + residue) * e.weight.channel_scale[1]; }, 0.00489f,
       0.00492f},
  };
  for (const Pair& pair : pairs) {
    SCOPED_TRACE(pair.what);
    W4Weight weight = random_weight(W4Form::per_group, kPost, kN, kK, 3);
    weight.group_scale[2] = 1;  // channel 1, group 0: values are codes - 4
    weight.scaled_zero[2] = 4;
    weight.codes[kK + 5] = std::string(pair.what) == "a value of 4" ? 8 : 4;
    Exported exported(weight);
    pair.change(exported, pair.under);
    const auto found = recover(exported.view());
    ASSERT_TRUE(found) << found.error().message();
    EXPECT_EQ(*found, weight);
    pair.change(exported = Exported(weight), pair.over);
    const auto refused = recover(exported.view());
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message(), HasSubstr("is not an integer"));
    EXPECT_THAT(refused.error().where, HasSubstr("channel 1"));
  }
}

TEST(Words, HoldEightCodesFromTheLowBitsOnPaddedToARow) {
  const std::int32_t words[] = {static_cast<std::int32_t>(0xFEDCBA98u), 0x0000000F, 0x76543210, 0x00000000};
  EXPECT_THAT(unpack_words(words, 2, 9).value(),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 7, -8, -7, -6, -5, -4, -3, -2, -1, -8));
  EXPECT_THAT(unpack_words(words, 2, 17).error().message(),
              HasSubstr("4 words do not hold 4-bit codes [2, 17]"));
}

struct Groups {
  std::vector<std::int8_t> q, zero;
  std::vector<float> scale;

  // Every code occurs in every group.
  explicit Groups(bool symmetric) {
    std::mt19937 random(5);
    for (std::size_t i = 0; i < kN * kK; ++i)
      q.push_back(static_cast<std::int8_t>((i * 7 + i / 128) % 16) - 8);
    for (std::size_t i = 0; i < kN * kK / kGroup; ++i) {
      scale.push_back(static_cast<float>(1 + random() % 8) * 0.0107421875f);
      if (!symmetric) zero.push_back(static_cast<std::int8_t>(random() % 16) - 8);
    }
  }
  Int4Groups view() const { return {.n = kN, .k = kK, .q = q, .scale = scale, .zero = zero}; }
  double number(std::size_t i) const {
    const std::size_t g = i / kGroup;
    return static_cast<double>(scale[g]) * (q[i] - (zero.empty() ? 0 : zero[g]));
  }
};

TEST(Int4Groups, AreTakenExactlyWhereScalesAreAFloat16TimesIntegers) {
  for (const bool symmetric : {true, false}) {
    const Groups groups(symmetric);
    const auto imported = from_int4_groups(groups.view(), Inexact::refused);
    ASSERT_TRUE(imported) << imported.error().message();
    EXPECT_TRUE(imported->exact);
    EXPECT_EQ(imported->error, 0);
    const std::vector<float> found = decoded(imported->weight);
    for (std::size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(imported->weight.codes[i], groups.q[i] + 8) << i;
      ASSERT_EQ(found[i], groups.number(i)) << i;
    }
  }
}

TEST(Int4Groups, OfOtherScalesAreRefusedOrRequantizedWithTheErrorReported) {
  for (const bool symmetric : {true, false}) {
    Groups groups(symmetric);
    std::mt19937 random(6);
    for (float& scale : groups.scale) scale *= 1 + static_cast<float>(random() % 1000) * 1e-4f;
    const auto refused = from_int4_groups(groups.view(), Inexact::refused);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
    EXPECT_THAT(refused.error().what, HasSubstr("requantizing costs a relative error of 0.0"));

    const ImportedW4 imported = from_int4_groups(groups.view(), Inexact::requantized).value();
    EXPECT_FALSE(imported.exact);
    EXPECT_TRUE(check(imported.weight));
    const std::vector<float> found = decoded(imported.weight);
    double losses = 0, sums = 0, worst = 0;
    for (std::size_t n = 0; n < kN; ++n) {
      double loss = 0, sum = 0;
      for (std::size_t i = n * kK; i < (n + 1) * kK; ++i) {
        loss += std::pow(groups.number(i) - found[i], 2);
        sum += std::pow(groups.number(i), 2);
      }
      losses += loss;
      sums += sum;
      worst = std::max(worst, std::sqrt(loss / sum));
    }
    EXPECT_NEAR(imported.error, std::sqrt(losses / sums), 1e-9);
    EXPECT_NEAR(imported.worst_error, worst, 1e-9);
  }
}

// Whatever integer the greatest scale of a row is, the others next to it and the codes as they were: that is
// no better.
TEST(Int4Groups, AreRequantizedToTheBestChannelScale) {
  Groups groups(true);
  std::mt19937 random(8);
  for (float& scale : groups.scale) scale *= 1 + static_cast<float>(random() % 1000) * 1e-3f;
  const ImportedW4 imported = from_int4_groups(groups.view(), Inexact::requantized).value();
  const std::vector<float> found = decoded(imported.weight);
  for (std::size_t n = 0; n < kN; ++n) {
    double loss = 0;
    for (std::size_t i = n * kK; i < (n + 1) * kK; ++i) loss += std::pow(groups.number(i) - found[i], 2);
    const std::span<const float> scales = std::span(groups.scale).subspan(n * kK / kGroup, kK / kGroup);
    for (int integer = 1; integer <= 15; ++integer) {  // -8 · 15 and 7 · 15 are int8
      const float greatest = *std::max_element(scales.begin(), scales.end());
      const double channel = to_float(to_half(greatest / static_cast<float>(integer)));
      double kept = 0;
      for (std::size_t i = n * kK; i < (n + 1) * kK; ++i) {
        const double step = std::max(1.0, std::nearbyint(groups.scale[i / kGroup] / channel)) * channel;
        kept += std::pow(groups.number(i) - step * groups.q[i], 2);
      }
      EXPECT_LE(loss, kept) << n << " " << integer;
    }
  }
}

TEST(Int4Groups, RefuseWhatIsNoneOfTheirNumbers) {
  using Change = void (*)(Groups&);
  struct Case {
    Change change;
    const char* message;
  };
  for (const Case& c : {Case{[](Groups& g) { g.q[kK + 130] = 8; }, "channel 1, group 1: 8 is outside -8..7"},
                        Case{[](Groups& g) { g.zero[3] = -9; }, "channel 1, group 1: the zero -9"},
                        Case{[](Groups& g) { g.scale[3] = 0; }, "channel 1, group 1: the scale 0"},
                        Case{[](Groups& g) { g.scale[3] = NAN; }, "channel 1, group 1: the scale nan"},
                        Case{[](Groups& g) { g.scale[3] = 1e30f; }, "no float16 is a scale of the row"},
                        Case{[](Groups& g) { g.scale.pop_back(); }, "63 scales"}}) {
    Groups groups(false);
    c.change(groups);
    EXPECT_THAT(from_int4_groups(groups.view(), Inexact::requantized).error().message(),
                HasSubstr(c.message));
  }
  const Groups groups(true);
  Int4Groups view = groups.view();
  view.group_size = 64;
  EXPECT_THAT(from_int4_groups(view, Inexact::requantized).error().message(), HasSubstr("groups of 64"));
}

}  // namespace
}  // namespace oasr::formats
