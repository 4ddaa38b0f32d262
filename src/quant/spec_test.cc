#include "quant/spec.h"

#include <gtest/gtest.h>

namespace oasr::quant {
namespace {

QuantizationSpec full_spec() {
  QuantizationSpec spec;
  spec.layers["model.fc1"] = {.scheme = "int8_w8a8", .smoothed = true};
  spec.layers["model.fc2"] = {.scheme = "int8_w8a8_static", .smoothed = false};
  spec.layers["model.fc3"] = {.scheme = "w4a8_g128", .zero_domain = formats::ZeroDomain::post_scaled};
  spec.schemes = {"int8_w8a8", "int8_w8a8_static"};
  spec.ignore = {"model.decoder.*", "*.é"};
  spec.module_types = {"linear", "conv1d"};
  spec.producer = {.tool = "oasr",
                   .version = "0.1.0",
                   .recipe = "smoothquant_w8a8_fused",
                   .skipped = {{.path = "model.z", .reason = "in_features 80 is not …"},
                               {.path = "model.a", .reason = "tied"}},
                   .options = {{"alpha", "0.5"}, {"manifest_sha256", "00ff"}}};
  return spec;
}

// Through text, as in a file.
Result<QuantizationSpec> round_trip(const QuantizationSpec& spec) {
  return spec_from_json(parse_json(dump_json(to_json(spec)), "spec").value());
}

TEST(QuantizationSpec, SurvivesJsonExactly) {
  EXPECT_EQ(round_trip(full_spec()).value(), full_spec());
  EXPECT_EQ(round_trip({}).value(), QuantizationSpec{});
}

TEST(QuantizationSpec, IsWrittenWithItsKeysInAFixedOrder) {
  EXPECT_EQ(dump_json(to_json(full_spec())),
            R"({"schemes":["int8_w8a8","int8_w8a8_static"],"module_types":["linear","conv1d"],)"
            R"("ignore":["model.decoder.*","*.é"],)"
            R"("layers":[{"path":"model.fc1","scheme":"int8_w8a8","smoothed":true},)"
            R"({"path":"model.fc2","scheme":"int8_w8a8_static","smoothed":false},)"
            R"({"path":"model.fc3","scheme":"w4a8_g128","smoothed":false,"zero_domain":"post_scaled"}],)"
            R"("producer":{"tool":"oasr","version":"0.1.0","recipe":"smoothquant_w8a8_fused",)"
            R"("skipped":[{"path":"model.z","reason":"in_features 80 is not …"},)"
            R"({"path":"model.a","reason":"tied"}],)"
            R"("options":{"alpha":"0.5","manifest_sha256":"00ff"}}})");
}

TEST(QuantizationSpec, WritesEmptyListsAndObjectsAsSuch) {
  EXPECT_EQ(dump_json(to_json({})),
            R"({"schemes":[],"module_types":[],"ignore":[],"layers":[],"producer":{"tool":"",)"
            R"("version":"","recipe":"","skipped":[],"options":{}}})");
}

TEST(QuantizationSpec, ReadsADescribedSchemeThatIsNotServed) {
  QuantizationSpec spec;
  spec.layers["a"] = {.scheme = "fp8_w8a8"};
  EXPECT_EQ(round_trip(spec).value(), spec);
}

TEST(QuantizationSpec, FindsLayersByPath) {
  const auto spec = full_spec();
  EXPECT_FALSE(spec.empty());
  EXPECT_TRUE(QuantizationSpec{}.empty());
  ASSERT_NE(spec.find("model.fc1"), nullptr);
  EXPECT_TRUE(spec.find("model.fc1")->smoothed);
  EXPECT_EQ(spec.find("model.fc"), nullptr);
}

// Every value of the JSON, replaced by one of each other type, is refused at its place.
TEST(QuantizationSpec, RefusesEveryWrongTypeAtItsPlace) {
  const Json good = parse_json(dump_json(to_json(full_spec())), "spec").value();
  const Json others[] = {nullptr, 1, "x", true, Json::array(), Json::object()};
  const Json leaves = good.flatten();
  int tried = 0;
  for (const auto& [pointer, leaf] : leaves.items()) {
    // The value itself and every container around it.
    for (Json::json_pointer at(pointer);; at = at.parent_pointer()) {
      for (const auto& other : others) {
        if (other.type() == good.at(at).type()) continue;
        Json changed = good;
        changed.at(at) = other;
        const auto read = spec_from_json(changed);
        ASSERT_FALSE(read) << at << " " << other;
        EXPECT_EQ(read.error().code, ErrorCode::bad_checkpoint);
        EXPECT_TRUE(read.error().where.starts_with("quantization")) << read.error().message();
        ++tried;
      }
      if (at.empty()) break;
    }
  }
  EXPECT_GT(tried, 300);
}

// An empty object of the producer's options is an object; every other object has fixed keys.
TEST(QuantizationSpec, RefusesEveryMissingAndEveryAddedKey) {
  const Json good = parse_json(dump_json(to_json(full_spec())), "spec").value();
  for (const char* place : {"", "/layers/1", "/layers/2", "/producer", "/producer/skipped/0"}) {
    const Json::json_pointer at(place);
    for (const auto& [key, value] : good.at(at).items()) {
      Json changed = good;
      changed.at(at).erase(key);
      const auto read = spec_from_json(changed);
      ASSERT_FALSE(read) << place << " " << key;
      EXPECT_EQ(read.error().what, "the key is missing");
      EXPECT_TRUE(read.error().where.ends_with("." + key)) << read.error().where;
    }
    Json changed = good;
    changed.at(at)["more"] = 1;
    const auto read = spec_from_json(changed);
    ASSERT_FALSE(read) << place;
    EXPECT_EQ(read.error().what, "the key is not known");
    EXPECT_TRUE(read.error().where.ends_with(".more")) << read.error().where;
  }
}

}  // namespace
}  // namespace oasr::quant
