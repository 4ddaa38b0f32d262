// The verdict on texts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quantize/gate.h"

namespace oasr::quantize {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct Heard {
  std::string reference, text, failure = {};
};

EvalReport report(const std::vector<Heard>& heard, double seconds = 3,
                  const std::string& normalizer = "basic") {
  std::vector<EvalUtterance> utterances;
  for (const Heard& h : heard) {
    EvalUtterance u;
    u.set = "test";
    u.id = "u" + std::to_string(utterances.size());
    u.reference = h.reference;
    u.hypothesis = h.text;
    u.failure = h.failure;
    // The second half is longer.
    u.seconds = 2 * utterances.size() < heard.size() ? seconds : 4 * seconds;
    utterances.push_back(std::move(u));
  }
  return score_utterances(std::move(utterances),
                          {.normalizer = normalizer, .costs = "unit", .resamples = 200})
      .value();
}

GateReport judged(const std::vector<Heard>& full, const std::vector<Heard>& quantized, double limit = 0.1) {
  GateOptions options;
  options.max_wer_increase = limit;
  const GateSide a{"offline", report(full)}, b{"offline", report(quantized)};
  return judge(options, {&a, 1}, {&b, 1}).value();
}

// Ten utterances of ten words, all right.
std::vector<Heard> perfect() {
  return std::vector<Heard>(10, {"a b c d e f g h i j", "a b c d e f g h i j"});
}

std::vector<Heard> with(std::vector<Heard> heard, std::size_t at, const std::string& text) {
  heard[at].text = text;
  return heard;
}

Symptoms symptoms(const Heard& heard) { return symptoms_of(report({heard})); }

TEST(Judge, PassesTheSameTexts) {
  const GateReport gate = judged(perfect(), perfect(), 0);
  EXPECT_TRUE(gate.passed);
  EXPECT_EQ(gate.increase, 0);
  EXPECT_EQ(gate.utterances, 10);
  EXPECT_EQ(gate.seconds, 5 * 3 + 5 * 12);
  EXPECT_EQ(gate.normalizer, "basic");
  ASSERT_EQ(gate.modes.size(), 1u);
  EXPECT_EQ(gate.modes[0].name, "offline");
  EXPECT_THAT(gate.verdict,
              HasSubstr("Passed (at most +0 points). Offline, word error goes from 0.00 to 0.00 %"));
}

TEST(Judge, HoldsTheLimitToTheDigit) {
  const auto worse = with(perfect(), 0, "x b c d e f g h i j");  // one word of a hundred: 1 point
  EXPECT_TRUE(judged(perfect(), worse, 1).passed);
  EXPECT_FALSE(judged(perfect(), worse, 0.99).passed);
  EXPECT_EQ(judged(perfect(), worse).increase, 1);
  // Against the same error at full precision it is none.
  EXPECT_TRUE(judged(worse, worse, 0).passed);
  EXPECT_EQ(judged(worse, perfect(), 0).increase, -1);
}

TEST(Judge, SaysWhatGotWorseAndWhere) {
  auto worse = with(perfect(), 9, "x b c d e f g h i j");
  worse = with(std::move(worse), 8, "b c d e f g h i j k k");
  worse = with(std::move(worse), 1, "a b c d e f g h i");
  const GateReport gate = judged(perfect(), worse);
  EXPECT_FALSE(gate.passed);
  EXPECT_THAT(gate.verdict,
              HasSubstr("Failed (at most +0.1 points). Offline, word error goes from 0.00 to 5.00 %, "
                        "by +5.000 points (95 % interval "));
  EXPECT_THAT(
      gate.verdict,
      HasSubstr(": substitutions +1, deletions +2, insertions +2; most of it in 10-15 s (+8.000 points)."));
  ASSERT_EQ(gate.modes[0].groups.size(), 3u);
  EXPECT_EQ(gate.modes[0].groups[0].name, "all");
  EXPECT_EQ(gate.modes[0].groups[1].name, "2-5 s");
  EXPECT_EQ(gate.modes[0].groups[2].name, "10-15 s");
  EXPECT_THAT(gate.modes[0].worse, ElementsAre("u8", "u1", "u9"));
  EXPECT_THAT(gate.modes[0].better, ElementsAre());
  const GateReport back = judged(worse, with(worse, 9, "y b c d e f g h i j"));  // another error in its place
  EXPECT_THAT(back.modes[0].worse, ElementsAre());
  EXPECT_THAT(back.modes[0].better, ElementsAre());
  EXPECT_THAT(judged(worse, perfect()).modes[0].better, ElementsAre("u8", "u1", "u9"));
}

TEST(Judge, MoreSymptomsFailWhateverTheWordError) {
  const std::string loop = "a a a a a a a a a a";
  const auto expect_failed = [](const std::vector<Heard>& full, const std::vector<Heard>& quantized,
                                const char* why) {
    const GateReport gate = judged(full, quantized, 100);
    EXPECT_FALSE(gate.passed) << why;
    EXPECT_THAT(gate.verdict, HasSubstr(why));
    EXPECT_TRUE(judged(quantized, quantized, 100).passed) << "full precision has it too";
    EXPECT_TRUE(judged(quantized, full, 100).passed) << "fewer";
  };
  expect_failed(perfect(), with(perfect(), 3, ""), "empty texts: 0 at full precision, 1 quantized");
  expect_failed(perfect(), with(perfect(), 3, loop),
                "texts that repeat themselves: 0 at full precision, 1 quantized");
  auto failed = perfect();
  failed[2].failure = "the model computed NaN";
  expect_failed(perfect(), failed, "failed utterances: 0 at full precision, 1 quantized");
  EXPECT_THAT(judged(perfect(), with(perfect(), 3, ""), 100).verdict, Not(HasSubstr("substitutions")));
}

TEST(Judge, EveryModeHasToPass) {
  GateOptions options;
  const EvalReport good = report(perfect()), bad = report(with(perfect(), 0, "x"));
  const std::vector<GateSide> full = {{"offline", good}, {"streaming", good}};
  const std::vector<GateSide> quantized = {{"offline", good}, {"streaming", bad}};
  const GateReport gate = judge(options, full, quantized).value();
  EXPECT_FALSE(gate.passed);
  EXPECT_EQ(gate.increase, 10);
  EXPECT_THAT(gate.verdict, HasSubstr("Streaming, word error"));
  EXPECT_THAT(gate.verdict, Not(HasSubstr("Offline")));            // which is well
  EXPECT_EQ(judge(options, quantized, full).value().increase, 0);  // the greatest of 0 and -10
  EXPECT_EQ(judge(options, full, std::span(quantized).first(1)).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(judge(options, {}, {}).error().code, ErrorCode::invalid_argument);
}

TEST(Judge, RefusesWhatSaysNothing) {
  const auto error = [](const EvalReport& full, const EvalReport& quantized) {
    const GateSide a{"offline", full}, b{"offline", quantized};
    return judge({}, {&a, 1}, {&b, 1}).error();
  };
  const EvalReport no_words = report({{".", "a"}, {"!", ""}});
  EXPECT_THAT(error(no_words, no_words).message(), HasSubstr("no reference has a word"));
  const EvalReport nothing = report({{"a", "", "no such file"}, {"b", "", "no such file"}});
  EXPECT_EQ(error(nothing, nothing).code, ErrorCode::bad_audio);
  EXPECT_THAT(error(nothing, nothing).message(), HasSubstr("no such file"));
  EXPECT_THAT(error(report({{"a", "a"}}), report({{"b", "a"}})).message(), HasSubstr("references of 'u0'"));
}

TEST(Symptoms, ARepetitionIsFourRunsAndEightWords) {
  const auto repeats = [](const std::string& text) {
    return symptoms({"the reference", text}).repeating == 1;
  };
  EXPECT_FALSE(repeats("no no no no no no no"));
  EXPECT_TRUE(repeats("no no no no no no no no"));
  EXPECT_TRUE(repeats("well no no no no no no no no then"));
  EXPECT_FALSE(repeats("a b a b a b a"));
  EXPECT_TRUE(repeats("a b a b a b a b"));
  EXPECT_FALSE(repeats("x a b c a b c a b c a b x"));
  EXPECT_TRUE(repeats("x a b c a b c a b c a b c x"));
  EXPECT_FALSE(repeats("a a b b c c d d e e f f g g h h i i"));
  const std::string eight = "a b c d e f g h ", nine = "a b c d e f g h i ";
  EXPECT_TRUE(repeats(eight + eight + eight + eight));
  EXPECT_FALSE(repeats(nine + nine + nine + nine));
  EXPECT_TRUE(repeats("No, no. No! No, no, no no no"));                                      // as normalized
  EXPECT_EQ(symptoms({"no no no no no no no no", "no no no no no no no no"}).repeating, 0);  // it was said
}

TEST(Symptoms, AnEmptyTextIsOneWithoutAWordThatWasSaid) {
  EXPECT_EQ(symptoms({"a b", ""}).empty, 1);
  EXPECT_EQ(symptoms({"a b", " ... "}).empty, 1);
  EXPECT_EQ(symptoms({"a b", "c"}).empty, 0);
  EXPECT_EQ(symptoms({"...", ""}).empty, 0);
  const Symptoms failed = symptoms({"a b", "", "broken"});
  EXPECT_EQ(failed.failed, 1);
  EXPECT_EQ(failed.empty, 0);
}

}  // namespace
}  // namespace oasr::quantize
