#include "checkpoint/yaml_document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"

namespace oasr {
namespace {

using ::testing::HasSubstr;

Json yaml(std::string_view text) {
  auto json = parse_yaml(text, "train.yaml");
  CHECK(json.has_value(), json ? "" : json.error().message());
  return *json;
}

std::string refusal(std::string_view text) {
  const auto json = parse_yaml(text, "train.yaml");
  return json ? "accepted: " + json->dump() : json.error().message();
}

TEST(YamlDocument, TypesPlainScalarsAsTheCoreSchemaDoes) {
  const Json json = yaml("a: 12\nb: -0.5\nc: 1e-3\nd: true\ne: False\nf: ~\ng:\nh: .5\ni: +3\n");
  EXPECT_EQ(json.dump(),
            R"({"a":12,"b":-0.5,"c":0.001,"d":true,"e":false,"f":null,"g":null,"h":0.5,"i":3})");
}

TEST(YamlDocument, LeavesTextThatOnlyLooksLikeAValue) {
  // "no" is a language; quotes make text of anything.
  const Json json = yaml("a: no\nb: '12'\nc: \"true\"\nd: 0x10\ne: 1.2.3\nf: inf\ng: nan\nh: '-'\n");
  for (const auto& [key, value] : json.items()) {
    EXPECT_TRUE(value.is_string()) << key << ": " << value;
  }
}

TEST(YamlDocument, WritesAliasesOut) {
  EXPECT_EQ(yaml("a: &x {b: [1, 2]}\nc: *x\n").dump(), R"({"a":{"b":[1,2]},"c":{"b":[1,2]}})");
}

TEST(YamlDocument, RefusesByLine) {
  EXPECT_THAT(refusal("a: 1\nb: 2\na: 3\n"), HasSubstr("the key \"a\" twice (line 3)"));
  EXPECT_THAT(refusal("a: [1\nb: 2\n"), HasSubstr("is not YAML"));
  EXPECT_THAT(refusal("? [a]\n: 1\n"), HasSubstr("key that is no plain text"));
  EXPECT_THAT(refusal("a: \xC3\n"), HasSubstr("UTF-8"));
  EXPECT_THAT(refusal(std::string_view("a: \0", 4)), HasSubstr("zero bytes"));
}

TEST(YamlDocument, RefusesWhatGrowsBeyondMeasure) {
  std::string bomb = "a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) bomb += (j > 0 ? "," : "") + before;
    bomb += "]\n";
  }
  EXPECT_THAT(refusal(bomb), HasSubstr("aliases"));
  EXPECT_THAT(refusal(std::string(100, '[') + std::string(100, ']')), HasSubstr("too deeply"));
  EXPECT_THAT(refusal(std::string(100'000, '[')), HasSubstr("is not YAML"));
}

}  // namespace
}  // namespace oasr
