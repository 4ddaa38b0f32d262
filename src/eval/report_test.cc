#include "eval/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "eval/svg.h"

namespace oasr::eval {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

EvalUtterance utterance(const std::string& id, const std::string& reference,
                        const std::string& hypothesis, double seconds = 0) {
  EvalUtterance u;
  u.set = "set";
  u.id = id;
  u.reference = reference;
  u.hypothesis = hypothesis;
  u.seconds = seconds;
  return u;
}

EvalReport score(std::vector<EvalUtterance> utterances, const std::string& normalizer = "none") {
  EvalOptions options;
  options.normalizer = normalizer;
  options.resamples = 100;
  auto report = score_utterances(std::move(utterances), options);
  EXPECT_TRUE(report);
  return *report;
}

TEST(EvalReport, CountsWordsAndCharactersWithoutSpaces) {
  const auto report = score({utterance("a", "the cat sat", "the  cut sat down")});
  EXPECT_EQ(report.total.words.counts, (ErrorCounts{3, 1, 0, 1}));
  EXPECT_EQ(report.total.characters.counts, (ErrorCounts{9, 1, 0, 4}));
  EXPECT_DOUBLE_EQ(*report.total.words.percent, 200.0 / 3);
  EXPECT_EQ(report.total.with_errors, 1);
}

TEST(EvalReport, CharactersAreCodePoints) {
  const auto report = score({utterance("a", "中文字", "中问字")});
  EXPECT_EQ(report.total.characters.counts, (ErrorCounts{3, 1, 0, 0}));
  EXPECT_EQ(report.total.words.counts, (ErrorCounts{1, 1, 0, 0}));
  EXPECT_EQ(score({utterance("a", "中文字", "中问字")}, "chinese-chars").total.words.counts,
            (ErrorCounts{3, 1, 0, 0}));
}

TEST(EvalReport, BothSidesAreNormalized) {
  const auto report =
      score({utterance("a", "Mr. Smith won't pay $20", "mister Smith will not pay twenty dollars")},
            "whisper-english");
  EXPECT_EQ(report.total.words.counts.errors(), 0);
  EXPECT_EQ(report.utterances[0].normalized_reference, "mister smith will not pay $20");
}

TEST(EvalReport, GroupsAddUpToTheWhole) {
  auto a = utterance("a", "x y", "x", 1), b = utterance("b", "x y z", "x q z", 7),
       c = utterance("c", "w", "w v", 2);
  a.speaker = b.speaker = "s";
  b.set = "other";
  const auto report = score({a, b, c});
  for (const auto& groups : {report.sets, report.lengths, report.speakers}) {
    ErrorCounts sum;
    for (const auto& group : groups) {
      sum.reference += group.words.counts.reference;
      sum.substitutions += group.words.counts.substitutions;
      sum.deletions += group.words.counts.deletions;
      sum.insertions += group.words.counts.insertions;
    }
    EXPECT_EQ(sum, report.total.words.counts);
  }
  EXPECT_EQ(report.length_unit, "s");
  std::vector<std::string> names;
  for (const auto& group : report.lengths) names.push_back(group.name);
  EXPECT_THAT(names, ElementsAre("0-2", "2-5", "5-10"));  // 2 s are the second's
  EXPECT_EQ(report.speakers[0].name, "");                 // c
  EXPECT_EQ(score({utterance("a", "x", "x")}).length_unit, "words");
  EXPECT_EQ(score({utterance("a", "x", "x", 3), utterance("b", "x", "")}).lengths[1].name,
            "not known");
}

TEST(EvalReport, FrequentErrorsAreCounted) {
  const auto report = score({utterance("a", "a b c", "a d c"), utterance("b", "b", "d"),
                             utterance("c", "x y", "x"), utterance("d", "x", "x z")});
  ASSERT_EQ(report.substitutions.size(), 1u);
  EXPECT_EQ(report.substitutions[0].reference, "b");
  EXPECT_EQ(report.substitutions[0].count, 2);
  EXPECT_EQ(report.deletions[0].reference, "y");
  EXPECT_EQ(report.insertions[0].hypothesis, "z");
}

TEST(EvalReport, WithoutReferenceWordsThereIsNoRate) {
  const auto report = score({utterance("a", "", "oh no")});
  EXPECT_FALSE(report.total.words.percent);
  EXPECT_EQ(report.total.words.counts, (ErrorCounts{0, 0, 0, 2}));
  EXPECT_THAT(eval_json(report), HasSubstr("\"percent\": null"));
  EXPECT_THAT(report.notes, ElementsAre(HasSubstr("'a'")));
}

TEST(EvalReport, JsonComesBackAndOtherFilesAreRefused) {
  auto failed = utterance("b", "z \"quoted\" \xE4\xB8\xAD", "");
  failed.failure = "missing";
  auto report = score({utterance("a", "x y", "x"), failed});
  report.subject = "m";
  report.configuration = R"({"k": 1})";
  const auto json = eval_json(report);
  const auto back = parse_eval_report(json, "r.json");
  ASSERT_TRUE(back) << back.error().message();
  ASSERT_EQ(back->utterances.size(), 2u);
  EXPECT_EQ(back->utterances[1].reference, failed.reference);
  EXPECT_EQ(back->utterances[1].failure, "missing");
  EXPECT_EQ(back->utterances[0].words, report.utterances[0].words);
  EXPECT_EQ(back->configuration, R"({"k":1})");
  for (const std::string bad : {"{}", "[", R"({"format": "oasr-eval", "version": 2})",
                                R"({"format": "oasr-eval", "version": 1})"}) {
    EXPECT_EQ(parse_eval_report(bad, "r.json").error().code, ErrorCode::invalid_argument) << bad;
  }
}

TEST(EvalReport, TextShowsAlignmentsColumnByColumn) {
  const auto report = score({utterance("a", "one two three", "one too three four")});
  EXPECT_THAT(eval_text(report),
              HasSubstr("  ref  one two three ****\n  hyp      too       four\n"));
}

TEST(EvalReport, ThePageEscapesWhatOthersWrote) {
  auto report = score({utterance("<script>", "a <b> & c", "a")});
  report.subject = "\"m\" <x>";
  const auto html = eval_html(report);
  EXPECT_THAT(html, Not(HasSubstr("<script>")));
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;"));
  EXPECT_THAT(html, HasSubstr("&lt;b&gt;"));
  EXPECT_THAT(html, Not(HasSubstr("http")));  // no other file is needed
  EXPECT_EQ(escaped_html(std::string("a\x01\xFF")), "a\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(EvalOptions, UnknownNamesAreRefused) {
  EvalOptions options;
  options.normalizer = "english";
  EXPECT_EQ(check_eval_options(options).error().where, "normalizer");
  options = {};
  options.costs = "free";
  EXPECT_EQ(check_eval_options(options).error().where, "costs");
  options = {};
  options.resamples = 0;
  EXPECT_EQ(check_eval_options(options).error().where, "resamples");
}

}  // namespace
}  // namespace oasr::eval
