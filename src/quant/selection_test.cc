#include "quant/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quant/testing.h"

namespace oasr::quant {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

// "path scheme" of every layer of a spec.
std::vector<std::string> chosen(const QuantizationSpec& spec) {
  std::vector<std::string> lines;
  for (const auto& [path, layer] : spec.layers) {
    EXPECT_FALSE(layer.smoothed);
    lines.push_back(path + " " + layer.scheme);
  }
  return lines;
}

std::vector<std::string> skipped(const QuantizationSpec& spec) {
  std::vector<std::string> lines;
  for (const auto& layer : spec.producer.skipped) lines.push_back(layer.path + ": " + layer.reason);
  return lines;
}

QuantizationSpec selected(const QuantRequest& request, Origin origin = Origin::calibrated) {
  return select(request, small_model(), origin).value();
}

TEST(Selection, WithoutASchemeNothingIsQuantized) {
  EXPECT_EQ(selected({}, Origin::online), QuantizationSpec{});
}

TEST(Selection, TakesLinearAndPointwiseConvByDefault) {
  const auto spec = selected({.scheme = "int8_w8a8"}, Origin::online);
  EXPECT_THAT(chosen(spec), UnorderedElementsAre("encoder.layers.0.fc1 int8_w8a8",
                                                 "encoder.layers.0.fc2 int8_w8a8",
                                                 "encoder.layers.0.pointwise int8_w8a8",
                                                 "decoder.layers.0.fc1 int8_w8a8"));
  EXPECT_THAT(spec.schemes, ElementsAre("int8_w8a8"));
  EXPECT_THAT(spec.module_types, ElementsAre("linear", "pointwise_conv"));
  EXPECT_THAT(spec.ignore, IsEmpty());
}

TEST(Selection, SkipsWhatNoKernelServesAndSaysWhyInTheModelsOrder) {
  EXPECT_THAT(skipped(selected({.scheme = "int8_w8a8"})),
              ElementsAre("encoder.odd: in_features 81 is not a multiple of 16, "
                          "out_features 5002 is not a multiple of 8",
                          "decoder.head: its weight is the token embedding's"));
  EXPECT_THAT(skipped(selected({.scheme = "int8_w8a8", .module_types = {"conv"}})),
              ElementsAre("encoder.convs.0: in_channels 1 is not a multiple of 16",
                          "encoder.layers.0.depthwise: it has 384 groups, and only dense "
                          "convolutions have a kernel"));
}

TEST(Selection, AlignmentIs16OfTheInputAnd8OfTheOutput) {
  const auto is_chosen = [](std::int64_t in, std::int64_t out) {
    const std::vector<LayerFacts> layers = {
        {.path = "a", .in_features = in, .out_features = out},
        {.path = "other", .in_features = 16, .out_features = 8}};
    return select({.scheme = "int8_w8a8"}, layers, Origin::online).value().find("a") != nullptr;
  };
  EXPECT_TRUE(is_chosen(16, 8));
  EXPECT_TRUE(is_chosen(48, 24));
  EXPECT_FALSE(is_chosen(8, 8));
  EXPECT_FALSE(is_chosen(24, 8));
  EXPECT_FALSE(is_chosen(16, 4));
  EXPECT_FALSE(is_chosen(16, 12));
}

// Layers that fit both schemes of 4-bit weights, one, and none; the last is not even int8's.
std::vector<LayerFacts> four_bit_model() {
  return {{.path = "both", .in_features = 256, .out_features = 64},
          {.path = "chn", .in_features = 160, .out_features = 64},
          {.path = "narrow", .in_features = 256, .out_features = 40},
          {.path = "head", .in_features = 256, .out_features = 5002},
          {.path = "tied", .in_features = 256, .out_features = 64, .not_quantizable = "it is tied"}};
}

TEST(Selection, AShapeThatFourBitsDoNotFitGetsInt8AndTheReasonIsKept) {
  const auto groups = select({.scheme = "w4a8_g128"}, four_bit_model(), Origin::online).value();
  EXPECT_THAT(chosen(groups), ElementsAre("both w4a8_g128", "chn int8_w8a8", "narrow int8_w8a8"));
  EXPECT_THAT(skipped(groups), ElementsAre("chn: in_features 160 is not a multiple of 128: int8_w8a8 instead",
                                           "narrow: out_features 40 is not a multiple of 32: int8_w8a8 instead",
                                           "head: out_features 5002 is not a multiple of 8", "tied: it is tied"));
  const auto channels = select({.scheme = "w4a8_chn"}, four_bit_model(), Origin::online).value();
  EXPECT_THAT(chosen(channels), ElementsAre("both w4a8_chn", "chn w4a8_chn", "narrow int8_w8a8"));
  EXPECT_THAT(skipped(channels), testing::SizeIs(3));
}

TEST(Selection, FourBitLayersAndNoOthersSayWhatTheirZerosAre) {
  const auto spec = select({.scheme = "w4a8_g128"}, four_bit_model(), Origin::online).value();
  EXPECT_EQ(spec.find("both")->zero_domain, formats::ZeroDomain::post_scaled);
  EXPECT_EQ(spec.find("chn")->zero_domain, std::nullopt);
  const auto named = select({.scheme = "w4a8_chn", .layers = {"both"}}, four_bit_model(), Origin::online).value();
  EXPECT_EQ(named.find("both")->zero_domain, formats::ZeroDomain::pre_scaled);
}

TEST(Selection, ConvolutionsBesideFourBitLayersGetStaticInt8) {
  const auto spec = selected({.scheme = "w4a8_g128", .module_types = {"linear", "conv1d"}});
  EXPECT_THAT(chosen(spec), UnorderedElementsAre("encoder.conv1 int8_w8a8_static",
                                                 "encoder.layers.0.fc1 w4a8_g128",
                                                 "encoder.layers.0.fc2 w4a8_g128",
                                                 "decoder.layers.0.fc1 w4a8_g128"));
}

TEST(Selection, ConvolutionsGetTheStaticVariant) {
  const auto spec =
      selected({.scheme = "int8_w8a8", .module_types = {"linear", "conv1d", "conv2d"}});
  EXPECT_THAT(
      chosen(spec),
      UnorderedElementsAre("encoder.convs.1 int8_w8a8_static", "encoder.conv1 int8_w8a8_static",
                           "encoder.layers.0.fc1 int8_w8a8", "encoder.layers.0.fc2 int8_w8a8",
                           "decoder.layers.0.fc1 int8_w8a8"));
  EXPECT_THAT(spec.schemes, ElementsAre("int8_w8a8"));
}

TEST(Selection, AStaticSchemeIsEveryLayers) {
  for (const auto& [path, layer] :
       selected({.scheme = "int8_w8a8_static", .module_types = {"all"}}).layers) {
    EXPECT_EQ(layer.scheme, "int8_w8a8_static") << path;
  }
}

TEST(Selection, AKindListWithoutLinearTakesNoLinear) {
  EXPECT_THAT(chosen(selected({.scheme = "int8_w8a8", .module_types = {"pointwise_conv"}})),
              ElementsAre("encoder.layers.0.pointwise int8_w8a8"));
}

TEST(Selection, IgnoredLayersAreNeitherChosenNorSkipped) {
  const auto spec = selected({.scheme = "int8_w8a8", .ignore = {"encoder.*", "*.head"}});
  EXPECT_THAT(chosen(spec), ElementsAre("decoder.layers.0.fc1 int8_w8a8"));
  EXPECT_THAT(skipped(spec), IsEmpty());
  EXPECT_THAT(spec.ignore, ElementsAre("encoder.*", "*.head"));
}

TEST(Selection, AGlobMayMatchLayersOfKindsThatAreNotSelected) {
  EXPECT_THAT(chosen(selected({.scheme = "int8_w8a8", .ignore = {"encoder.conv1"}})),
              testing::SizeIs(4));
}

TEST(Selection, NamedLayersAreTakenWhateverTheirKind) {
  const auto spec =
      selected({.scheme = "int8_w8a8", .layers = {"encoder.layers.0.fc1", "encoder.conv1"}});
  EXPECT_THAT(chosen(spec),
              ElementsAre("encoder.conv1 int8_w8a8_static", "encoder.layers.0.fc1 int8_w8a8"));
  EXPECT_THAT(spec.module_types, IsEmpty());
  EXPECT_THAT(skipped(spec), IsEmpty());
}

TEST(Selection, SaysWhoProducedIt) {
  const auto online = selected({.scheme = "int8_w8a8"}, Origin::online).producer;
  EXPECT_EQ(online.tool, "oasr");
  EXPECT_EQ(online.recipe, "online");
  EXPECT_EQ(selected({.scheme = "int8_w8a8"}).producer.recipe, "");
}

TEST(Selection, SurvivesJsonWithEveryKindAndReason) {
  const auto spec = selected({.scheme = "int8_w8a8", .ignore = {"*.fc2"}, .module_types = {"all"}});
  const auto json = parse_json(dump_json(to_json(spec)), "spec").value();
  EXPECT_EQ(spec_from_json(json).value(), spec);
  const auto four = select({.scheme = "w4a8_g128"}, four_bit_model(), Origin::online).value();
  EXPECT_EQ(spec_from_json(parse_json(dump_json(to_json(four)), "spec").value()).value(), four);
}

TEST(Kinds, GroupsAndRepetitionsResolveToKindsInTheTablesOrder) {
  const auto names = [](std::vector<std::string> words) {
    std::string text;
    const auto kinds = resolve_kinds(words).value();
    for (const auto kind : kinds) {
      text += std::string(enum_name(quant_kind_names(), kind)) + " ";
    }
    return text;
  };
  EXPECT_EQ(names({}), "linear pointwise_conv ");
  EXPECT_EQ(names({"conv"}), "pointwise_conv conv1d conv2d ");
  EXPECT_EQ(names({"all"}), "linear pointwise_conv conv1d conv2d ");
  EXPECT_EQ(names({"conv2d", "linear", "conv2d"}), "linear conv2d ");
}

TEST(Options, AddTheirValuesToTheRequest) {
  QuantRequest request;
  ASSERT_TRUE(add_option(request, "ignore=a.*,b.[01].*"));
  ASSERT_TRUE(add_option(request, "module_types=linear"));
  ASSERT_TRUE(add_option(request, "ignore=c=d"));
  EXPECT_THAT(request.ignore, ElementsAre("a.*", "b.[01].*", "c=d"));
  EXPECT_THAT(request.module_types, ElementsAre("linear"));
}

TEST(Options, ThatAreRefusedLeaveTheRequestAsItWas) {
  QuantRequest request;
  EXPECT_FALSE(add_option(request, "ignore=a,,b"));
  EXPECT_THAT(request.ignore, IsEmpty());
}

// A checkpoint of a fused recipe: some layers took the static scheme.
QuantizationSpec fused() {
  auto spec = selected({.scheme = "int8_w8a8"});
  spec.layers["encoder.layers.0.fc2"].scheme = "int8_w8a8_static";
  return spec;
}

TEST(Authority, NamingOwnSchemesOrNoneChangesNothing) {
  EXPECT_TRUE(check_authority(fused(), {}));
  EXPECT_TRUE(check_authority(fused(), {.scheme = "int8_w8a8"}));
  EXPECT_TRUE(check_authority(fused(), {.scheme = "int8_w8a8_static"}));
}

TEST(Authority, ASchemeThatWasAskedForIsOwnEvenIfNoLayerHasIt) {
  const auto spec = selected({.scheme = "int8_w8a8", .module_types = {"conv2d"}});
  EXPECT_TRUE(check_authority(spec, {.scheme = "int8_w8a8"}));
  EXPECT_TRUE(check_authority(spec, {.scheme = "int8_w8a8_static"}));
}

TEST(Authority, AFullPrecisionCheckpointHasNone) {
  EXPECT_TRUE(check_authority({}, {.scheme = "int8_w8a8", .ignore = {"a"}}));
}

TEST(StoredLayers, ThatSelectionChoseAreAccepted) {
  const auto layers = small_model();
  for (const char* kinds : {"linear", "conv", "all"}) {
    EXPECT_TRUE(check_layers(selected({.scheme = "int8_w8a8", .module_types = {kinds}}), layers));
  }
  EXPECT_TRUE(check_layers(fused(), layers));
  EXPECT_TRUE(check_layers(selected({.scheme = "w4a8_g128", .module_types = {"all"}}), layers));
  EXPECT_TRUE(check_layers(selected({.scheme = "w4a8_chn", .module_types = {"conv1d"}}), layers));
  // All layers have the fallback: the spec answers to what it was asked for all the same.
  const std::vector<LayerFacts> narrow = {{.path = "a", .in_features = 16, .out_features = 8}};
  const auto fallback = select({.scheme = "w4a8_g128"}, narrow, Origin::online).value();
  EXPECT_TRUE(check_layers(fallback, narrow));
  EXPECT_TRUE(check_authority(fallback, {.scheme = "w4a8_g128"}));
  EXPECT_TRUE(check_layers({}, layers));
}

}  // namespace
}  // namespace oasr::quant
