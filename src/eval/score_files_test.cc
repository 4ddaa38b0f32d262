#include "eval/score_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "oasr/eval.h"
#include "testing/test_files.h"

namespace oasr::eval {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<ScoreTexts> read(const testing::TestFiles& files, const std::string& reference,
                        const std::string& hypothesis, const std::string& empty = "refuse") {
  ScoreFiles what;
  what.reference = files.path(reference);
  what.hypothesis = files.path(hypothesis);
  what.read.empty_reference = empty;
  return read_score_files(what);
}

std::string error_of(const Result<ScoreTexts>& result) {
  return result ? "" : result.error().message();
}

TEST(ScoreFiles, EveryFormatGivesTheSameTexts) {
  const testing::TestFiles files;
  files.write("kaldi", "a hello  world\nb\tone two\n");
  files.write("t.tsv", "id\ttext\na\thello  world\nb\tone two\n");
  files.write("t.trn", ";; comment\nhello  world (a)\none two (b)\n");
  files.write(
      "t.jsonl",
      "{\"id\": \"a\", \"text\": \"hello  world\"}\n{\"id\": \"b\", \"text\": \"one two\"}\n");
  files.write("bom.txt",
              "\xEF\xBB\xBF"
              "a hello  world\r\n\r\nb one two\r\n");
  for (const auto* name : {"kaldi", "t.tsv", "t.trn", "t.jsonl", "bom.txt"}) {
    const auto texts = read(files, name, "kaldi");
    ASSERT_TRUE(texts) << name << error_of(texts);
    ASSERT_EQ(texts->utterances.size(), 2u) << name;
    EXPECT_EQ(texts->utterances[0].id, "a") << name;
    EXPECT_EQ(texts->utterances[0].reference, "hello  world") << name;
    EXPECT_EQ(texts->utterances[1].reference, "one two") << name;
    EXPECT_EQ(texts->utterances[1].hypothesis, "one two") << name;
  }
}

TEST(ScoreFiles, TheFormatIsSeenInTheLinesWhereTheNameDoesNotTell) {
  const auto format = [](std::string_view text) {
    return *find_text_format("auto", "x.txt", text);
  };
  EXPECT_EQ(format("{\"id\": 1}\n"), TextFormat::jsonl);
  EXPECT_EQ(format("some words (a)\nmore (b)\n"), TextFormat::trn);
  EXPECT_EQ(format("a\tsome words\nb\tmore\n"), TextFormat::tsv);
  EXPECT_EQ(format("a some words (aside)\nb more\n"), TextFormat::kaldi);
}

TEST(ScoreFiles, MissingHypothesesAreNamedAndExtraOnesAreNotCounted) {
  const testing::TestFiles files;
  files.write("ref", "a x y\nb z\nc w\n");
  files.write("hyp", "c w\nd v\na x\n");
  const auto texts = read(files, "ref", "hyp");
  ASSERT_TRUE(texts) << error_of(texts);
  EXPECT_EQ(texts->utterances[1].failure, "missing");
  EXPECT_EQ(texts->utterances[0].failure, "");
  EXPECT_THAT(texts->extra, ElementsAre("d"));
  const auto report = score_utterances(texts->utterances, {});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->total.words.counts, (ErrorCounts{4, 0, 2, 0}));  // y of a, z of b
}

TEST(ScoreFiles, AllBadLinesAreNamedWithTheirNumbers) {
  const testing::TestFiles files;
  files.write("hyp", "a x\n");
  files.write("r.tsv", "a\tx\na\ty\n\nb\tx\ty\nc\tz\n\tw\n");
  EXPECT_THAT(error_of(read(files, "r.tsv", "hyp")),
              AllOf(HasSubstr("r.tsv: line 2: the id 'a' is on line 1 already"),
                    HasSubstr("line 4: has more than"), HasSubstr("line 6: has no id")));
  files.write("r.jsonl", "{\"id\": \"a\", \"text\": \"x\"}\n{\"id\": \"b\"\n{\"id\": \"c\"}\n");
  EXPECT_THAT(error_of(read(files, "r.jsonl", "hyp")),
              AllOf(HasSubstr("line 2: is not valid JSON"), HasSubstr("line 3: has no \"text\"")));
  files.write("latin1", "a x\nb caf\xE9\n");
  EXPECT_THAT(error_of(read(files, "latin1", "hyp")), HasSubstr("line 2: byte 6 is not UTF-8"));
  files.write("utf16", std::string_view("\xFF\xFE"
                                        "a\0 \0x\0",
                                        8));
  EXPECT_THAT(error_of(read(files, "utf16", "hyp")), HasSubstr("UTF-16"));
  files.write("empty", "\n \n");
  EXPECT_THAT(error_of(read(files, "empty", "hyp")), HasSubstr("holds no utterance"));
  files.write("r.trn", "{ one / two } (a)\nno id\n");
  EXPECT_THAT(
      error_of(read(files, "r.trn", "hyp")),
      AllOf(HasSubstr("line 1: has alternatives"), HasSubstr("line 2: does not end with (id)")));
  EXPECT_EQ(read(files, "nowhere", "hyp").error().code, ErrorCode::not_found);
}

TEST(ScoreFiles, AnEmptyReferenceIsRefusedSkippedOrScoredAsAsked) {
  const testing::TestFiles files;
  files.write("ref", "a x\nb\nc y\n");
  files.write("hyp", "a x\nb oh no\nc y\n");
  EXPECT_THAT(error_of(read(files, "ref", "hyp")), HasSubstr("line 2: the reference is empty"));
  const auto skipped = read(files, "ref", "hyp", "skip");
  ASSERT_TRUE(skipped);
  EXPECT_EQ(skipped->utterances.size(), 2u);
  EXPECT_THAT(skipped->extra, ElementsAre());  // b has a reference, if an empty one
  const auto scored = read(files, "ref", "hyp", "score");
  ASSERT_TRUE(scored);
  const auto report = score_utterances(scored->utterances, {});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->total.words.counts, (ErrorCounts{2, 0, 0, 2}));
  EXPECT_THAT(report->notes, ElementsAre(HasSubstr("'b'")));
  EXPECT_FALSE(read(files, "ref", "hyp", "perhaps"));
}

TEST(ScoreFiles, SpeakersComeFromAFileOrFromTheIds) {
  const testing::TestFiles files;
  files.write("ref", "s1-1 x\ns1-2 y\ns2-1 z\n");
  ScoreFiles what{
      files.path("ref"), files.path("ref"), "auto", files.write("u2s", "s1-1 anna\n"), "-", {}};
  const auto texts = read_score_files(what);
  ASSERT_TRUE(texts);
  EXPECT_EQ(texts->utterances[0].speaker, "anna");
  EXPECT_EQ(texts->utterances[1].speaker, "s1");
}

TEST(ScoreFiles, IdsOfSeveralSetsAreKeptApartWhereBothFilesNameThem) {
  const testing::TestFiles files;
  files.write("r.jsonl", R"({"set": "m", "id": "1", "text": "x"})"
                         "\n"
                         R"({"set": "n", "id": "1", "text": "y"})"
                         "\n");
  const auto same = read(files, "r.jsonl", "r.jsonl");
  ASSERT_TRUE(same) << error_of(same);
  EXPECT_EQ(same->utterances[1].hypothesis, "y");
  files.write("hyp", "1 x\n");
  EXPECT_THAT(error_of(read(files, "r.jsonl", "hyp")),
              HasSubstr("the id '1' is on line 1 already"));
}

}  // namespace
}  // namespace oasr::eval
