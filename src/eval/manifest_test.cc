#include "eval/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/paths.h"
#include "testing/test_files.h"

namespace oasr::eval {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<EvalInputs> read(const std::string& path, const EvalReadOptions& options = {}) {
  const std::string paths[] = {path};
  return read_eval_manifests(paths, options);
}

std::string error_of(const Result<EvalInputs>& result) {
  return result ? "" : result.error().message();
}

TEST(EvalManifest, RowsHavePathsBesideTheFileAndASet) {
  const testing::TestFiles files;
  const auto path = files.write(
      "an4/manifest.jsonl",
      "{\"audio\": \"a.wav\", \"text\": \"x y\", \"speaker\": \"s\", \"duration\": 1.5, "
      "\"sample_rate\": 16000}\n\n"
      "{\"audio_filepath\": \"/b.wav\", \"text\": \"z\", \"id\": 7, \"set\": \"other\"}\n");
  const auto inputs = read(path);
  ASSERT_TRUE(inputs) << error_of(inputs);
  ASSERT_EQ(inputs->rows.size(), 2u);
  const auto& first = inputs->rows[0].utterance;
  EXPECT_EQ(first.audio, files.path("an4/a.wav"));
  EXPECT_EQ(first.id, "a.wav");
  EXPECT_EQ(first.set, "an4");
  EXPECT_EQ(first.speaker, "s");
  EXPECT_EQ(first.seconds, 1.5);
  EXPECT_EQ(inputs->rows[0].sample_rate, 16000);
  EXPECT_EQ(inputs->rows[1].utterance.audio, "/b.wav");
  EXPECT_EQ(inputs->rows[1].utterance.id, "7");
  EXPECT_EQ(inputs->rows[1].utterance.set, "other");
  EXPECT_EQ(inputs->rows[1].where, path + ":3");
}

TEST(EvalManifest, AllBadLinesAreNamedWithTheirNumbers) {
  const testing::TestFiles files;
  const auto path = files.write("m.jsonl",
                                "{\"audio\": \"a.wav\", \"text\": \"x\"}\n"
                                "{\"audio\": \"b.wav\"\n"
                                "{\"audio\": \"c.wav\"}\n"
                                "{\"text\": \"x\"}\n"
                                "{\"audio\": \"d.wav\", \"text\": \"x\", \"duration\": \"long\"}\n"
                                "{\"audio\": \"e\xFF.wav\", \"text\": \"x\"}\n");
  EXPECT_THAT(
      error_of(read(path)),
      AllOf(HasSubstr("line 6: byte 13 is not UTF-8"), HasSubstr("line 2: is not valid JSON"),
            HasSubstr("line 3: has no \"text\""), HasSubstr("line 4: has no \"audio\""),
            HasSubstr("line 5: \"duration\" is not a number from 0")));
  EXPECT_THAT(error_of(read(files.write("none.jsonl", "\n"))), HasSubstr("holds no utterance"));
  EXPECT_EQ(read(files.path("nowhere")).error().code, ErrorCode::not_found);
}

TEST(EvalManifest, AnIdIsThereOnceInASet) {
  const testing::TestFiles files;
  const auto path =
      files.write("m.jsonl",
                  "{\"audio\": \"a.wav\", \"text\": \"x\", \"id\": \"u\"}\n"
                  "{\"audio\": \"b.wav\", \"text\": \"x\", \"id\": \"u\", \"set\": \"n\"}\n"
                  "{\"audio\": \"c.wav\", \"text\": \"x\", \"id\": \"u\"}\n");
  EXPECT_THAT(error_of(read(path)),
              AllOf(HasSubstr(path + ":3"), HasSubstr("at " + path + ":1 already")));
}

TEST(EvalManifest, EmptyTextsAreRefusedOrLeftOutWithANote) {
  const testing::TestFiles files;
  const auto path = files.write(
      "m.jsonl",
      "{\"audio\": \"a.wav\", \"text\": \"\"}\n{\"audio\": \"b.wav\", \"text\": \"x\"}\n");
  EXPECT_THAT(error_of(read(path)), HasSubstr("line 1: \"text\" is empty"));
  const auto skipped = read(path, {.empty_reference = "skip"});
  ASSERT_TRUE(skipped);
  EXPECT_EQ(skipped->rows.size(), 1u);
  EXPECT_THAT(skipped->notes, ElementsAre(HasSubstr(path + ":1")));
  EXPECT_EQ(read(path, {.empty_reference = "score"})->rows.size(), 2u);
  EXPECT_EQ(read(path, {.empty_reference = "score", .audio_root = {}, .limit = 1})->rows.size(), 1u);
}

TEST(EvalManifest, MissingAudioIsNamedBeforeTheWorkAndAnotherRateIsNoted) {
  const testing::TestFiles files;
  const auto sample = (testing::project_dir() / "assets" / "samples" / "jfk.flac").string();
  auto inputs = read(files.write(
      "m.jsonl", "{\"audio\": \"" + sample + "\", \"text\": \"x\", \"sample_rate\": 8000}\n"));
  ASSERT_TRUE(inputs);
  ASSERT_TRUE(check_eval_audio(*inputs));
  EXPECT_THAT(inputs->notes, ElementsAre(HasSubstr("declares 8000 Hz, the file has 16000 Hz")));
  inputs = read(files.write(
      "n.jsonl", "{\"audio\": \"" + sample +
                     "\", \"text\": \"x\"}\n{\"audio\": \"no.wav\", \"text\": \"x\"}\n"));
  const auto checked = check_eval_audio(*inputs);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ErrorCode::not_found);
  EXPECT_THAT(checked.error().what, AllOf(HasSubstr("1 of 2"), HasSubstr("n.jsonl:2")));
}

TEST(EvalManifest, ADeclaredDurationIsComparedWithTheAudio) {
  EvalInput row;
  row.where = "m:1";
  row.utterance.seconds = 10;
  EXPECT_FALSE(duration_note(row, 10.15));  // within 0.1 s and 1 %
  EXPECT_THAT(*duration_note(row, 5), HasSubstr("m:1: declares 10.00 s, the audio has 5.00 s"));
}

}  // namespace
}  // namespace oasr::eval
