#include "quant/scheme.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "formats/w4_packed.h"

namespace oasr::quant {
namespace {

using testing::ElementsAre;

std::vector<std::string_view> names(bool served) {
  std::vector<std::string_view> found;
  for (const auto& scheme : quant_schemes()) {
    if (scheme.refusal.empty() == served) found.push_back(scheme.name);
  }
  return found;
}

TEST(Schemes, Int8AndW4A8AreServedAndFp8AndNvfp4AreDescribed) {
  EXPECT_THAT(names(true), ElementsAre("int8_w8a8", "int8_w8a8_static", "w4a8_g128", "w4a8_chn"));
  EXPECT_THAT(names(false), ElementsAre("fp8_w8a8", "fp8_w8a8_static", "nvfp4"));
}

TEST(Schemes, EveryRowIsCompleteAndCouldBeServed) {
  std::set<std::string_view> seen;
  for (const auto& scheme : quant_schemes()) {
    SCOPED_TRACE(scheme.name);
    EXPECT_TRUE(seen.insert(scheme.name).second);
    EXPECT_FALSE(scheme.what.empty());
    EXPECT_EQ(scheme.refusal.empty(), scheme.remedy.empty());
    EXPECT_TRUE(check_args(scheme.weights, scheme.activations));
    EXPECT_FALSE(scheme.weights.dynamic);
  }
}

TEST(Schemes, AreFoundByNameWithTheRefusalOfTheirRow) {
  for (const auto& scheme : quant_schemes()) {
    SCOPED_TRACE(scheme.name);
    EXPECT_EQ(known_scheme(scheme.name).value(), &scheme);
    const auto found = find_scheme(scheme.name);
    ASSERT_EQ(found.has_value(), scheme.refusal.empty());
    if (found) {
      EXPECT_EQ(*found, &scheme);
    } else {
      EXPECT_EQ(found.error().code, ErrorCode::unsupported);
      EXPECT_EQ(found.error().remedy, scheme.remedy);
    }
  }
}

TEST(Schemes, ARemedyNeverNamesASchemeThatIsNotServed) {
  for (const auto& scheme : quant_schemes()) {
    for (const auto name : names(false)) {
      EXPECT_EQ(scheme.remedy.find(name), std::string_view::npos) << scheme.name;
    }
  }
}

TEST(Schemes, Int8IsPerChannelAndPerTokenOrStatic) {
  const auto& dynamic = *find_scheme("int8_w8a8").value();
  EXPECT_EQ(dynamic.weights, (QuantArgs{.format = NumberFormat::int8,
                                        .granularity = Granularity::per_channel,
                                        .dynamic = false}));
  EXPECT_EQ(dynamic.activations, (QuantArgs{.format = NumberFormat::int8,
                                            .granularity = Granularity::per_token,
                                            .dynamic = true}));
  const auto& calibrated = *find_scheme("int8_w8a8_static").value();
  EXPECT_EQ(calibrated.weights, dynamic.weights);
  EXPECT_EQ(calibrated.activations, (QuantArgs{.format = NumberFormat::int8,
                                               .granularity = Granularity::per_tensor,
                                               .dynamic = false}));
}

TEST(Schemes, W4A8ServesTheShapesThatItsLayoutHoldsAndLeavesTheOthersToInt8) {
  using formats::W4Form;
  for (const auto& [name, form] : {std::pair("w4a8_g128", W4Form::per_group), {"w4a8_chn", W4Form::per_channel}}) {
    SCOPED_TRACE(name);
    const QuantScheme& scheme = *find_scheme(name).value();
    EXPECT_EQ(scheme.weights.format, NumberFormat::int4);
    EXPECT_EQ(scheme.activations, find_scheme("int8_w8a8").value()->activations);
    EXPECT_TRUE(scheme.zero_domain);
    EXPECT_EQ(scheme.fallback, "int8_w8a8");
    for (std::int64_t n = 8; n <= 96; n += 8) {
      for (std::int64_t k = 16; k <= 384; k += 16) {
        const bool fits = k % scheme.shape.in_multiple == 0 && n % scheme.shape.out_multiple == 0;
        ASSERT_EQ(formats::check_packed_shape(form, n, k).has_value(), fits) << n << " " << k;
      }
    }
  }
}

TEST(Schemes, AFallbackIsServedAndHasNone) {
  for (const auto& scheme : quant_schemes()) {
    if (scheme.fallback.empty()) continue;
    EXPECT_TRUE(find_scheme(scheme.fallback).value()->fallback.empty()) << scheme.name;
  }
}

TEST(StaticVariant, KeepsTheFormatAndIsItsOwn) {
  const auto variant = [](std::string_view name) {
    return static_variant(*known_scheme(name).value()).value()->name;
  };
  EXPECT_EQ(variant("int8_w8a8"), "int8_w8a8_static");
  EXPECT_EQ(variant("int8_w8a8_static"), "int8_w8a8_static");
  EXPECT_EQ(variant("fp8_w8a8"), "fp8_w8a8_static");
}

TEST(Formats, OnlyInt8HasConvolutions) {
  EXPECT_TRUE(has_convolutions(NumberFormat::int8));
  EXPECT_FALSE(has_convolutions(NumberFormat::int4));
  EXPECT_FALSE(has_convolutions(NumberFormat::fp8_e4m3));
  EXPECT_FALSE(has_convolutions(NumberFormat::nvfp4));
}

TEST(Formats, EveryValueHasAName) {
  for (const auto& scheme : quant_schemes()) {
    for (const auto& args : {scheme.weights, scheme.activations}) {
      EXPECT_FALSE(enum_name(number_format_names(), args.format).empty());
      EXPECT_FALSE(enum_name(granularity_names(), args.granularity).empty());
    }
  }
  EXPECT_EQ(parse_enum(number_format_names(), "fp8_e4m3"), NumberFormat::fp8_e4m3);
  EXPECT_EQ(parse_enum(granularity_names(), "per_group"), Granularity::per_group);
}

}  // namespace
}  // namespace oasr::quant
