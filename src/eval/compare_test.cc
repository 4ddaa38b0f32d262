#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "oasr/eval.h"

namespace oasr::eval {
namespace {

using ::testing::HasSubstr;

EvalReport report(const std::vector<std::pair<std::string, std::string>>& texts,
                  EvalOptions options = {}) {
  std::vector<EvalUtterance> utterances;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EvalUtterance u;
    u.set = i % 2 == 0 ? "even" : "odd";
    u.id = "u" + std::to_string(i);
    u.reference = texts[i].first;
    u.hypothesis = texts[i].second;
    utterances.push_back(u);
  }
  options.resamples = 500;
  return *score_utterances(std::move(utterances), options);
}

TEST(Compare, SaysWhichUtterancesChangedAndHow) {
  const auto a = report({{"x y", "x y"}, {"x y", "x"}, {"x y z", "q y z"}, {"x", "x"}});
  const auto b = report({{"x y", "a b"}, {"x y", "x y"}, {"x y z", "r y z"}, {"x", "x"}});
  const auto comparison = compare_reports(a, b);
  ASSERT_TRUE(comparison) << comparison.error().message();
  EXPECT_EQ(comparison->worse, 1);
  EXPECT_EQ(comparison->better, 1);
  EXPECT_EQ(comparison->other, 1);
  EXPECT_EQ(comparison->same, 1);
  ASSERT_EQ(comparison->changes.size(), 3u);
  EXPECT_EQ(comparison->changes[0].errors, 2);
  EXPECT_EQ(a.utterances[comparison->changes[0].a].id, "u0");
  ASSERT_EQ(comparison->groups.size(), 3u);  // all, even, odd
  EXPECT_DOUBLE_EQ(*comparison->groups[0].difference, 100.0 / 8);
  EXPECT_THAT(comparison_text(a, b, *comparison), HasSubstr("even u0: 0 -> 2 errors of 2 words"));
  EXPECT_THAT(comparison_json(a, b, *comparison), HasSubstr("\"worse\": 1"));
}

TEST(Compare, SaysInWhichLengthsItChanged) {
  const auto texts = [](const std::string& second) {
    return std::vector<std::pair<std::string, std::string>>{{"x y", "x y"}, {"a b c d e f", second}, {"x", "x"}};
  };
  const auto a = report(texts("a b c d e f")), b = report(texts("a b c d e"));
  const auto comparison = compare_reports(a, b);
  ASSERT_TRUE(comparison) << comparison.error().message();
  EXPECT_EQ(comparison->length_unit, "words");
  ASSERT_EQ(comparison->lengths.size(), 2u);
  EXPECT_EQ(comparison->lengths[0].name, "0-5");
  EXPECT_EQ(comparison->lengths[0].utterances, 2);
  EXPECT_EQ(*comparison->lengths[0].difference, 0);
  EXPECT_EQ(comparison->lengths[1].name, "6-10");
  EXPECT_DOUBLE_EQ(*comparison->lengths[1].difference, 100.0 / 6);
  EXPECT_THAT(comparison_text(a, b, *comparison), HasSubstr("\n6-10 words "));
  EXPECT_THAT(comparison_json(a, b, *comparison), HasSubstr("\"length_unit\": \"words\""));
  const auto short_ones = report({{"x y", "x y"}, {"x", "x"}});
  EXPECT_TRUE(compare_reports(short_ones, short_ones)->lengths.empty());  // of one length: "all" says it
}

TEST(Compare, TheOrderOfUtterancesDoesNotMatter) {
  const auto a = report({{"x y", "x y"}, {"x y", "x"}});
  auto b = a;
  std::reverse(b.utterances.begin(), b.utterances.end());
  const auto comparison = compare_reports(a, b);
  ASSERT_TRUE(comparison);
  EXPECT_EQ(comparison->same, 2);
}

TEST(Compare, WhatCanNotBeComparedIsNamed) {
  const auto a = report({{"x y", "x y"}, {"x y", "x"}});
  const auto error = [&](const EvalReport& b) { return compare_reports(a, b).error().what; };
  EXPECT_THAT(error(report({{"x y", "x y"}})), HasSubstr("'u1' of set 'odd' is not in the second"));
  EXPECT_THAT(error(report({{"x y", ""}, {"x y", ""}, {"z", ""}})),
              HasSubstr("'u2' of set 'even' is not in the first"));
  EXPECT_THAT(error(report({{"x y", "x y"}, {"x z", "x"}})), HasSubstr("the references of 'u1'"));
  EvalOptions basic;
  basic.normalizer = "basic";
  EXPECT_THAT(error(report({{"x y", "x y"}, {"x y", "x"}}, basic)), HasSubstr("none and basic"));
}

}  // namespace
}  // namespace oasr::eval
