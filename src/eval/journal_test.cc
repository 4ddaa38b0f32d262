#include "eval/journal.h"
#include "testing/test_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>


namespace oasr::eval {
namespace {

using ::testing::HasSubstr;

EvalJournal::Entry entry(const std::string& id, const std::string& text) {
  EvalJournal::Entry entry;
  entry.set = "s";
  entry.id = id;
  entry.audio = id + ".wav";
  entry.hypothesis = text;
  entry.seconds = 2;
  entry.wall = 0.5;
  entry.warnings = {"w"};
  return entry;
}

TEST(EvalJournal, WhatWasDoneIsThereAgain) {
  const testing::TestFiles files;
  const auto path = files.path("r.partial");
  {
    auto journal = EvalJournal::open(path, R"({"model": "m"})");
    ASSERT_TRUE(journal);
    EXPECT_TRUE(journal->done().empty());
    ASSERT_TRUE(journal->append(entry("a", "one\ntwo \"x\" é")));
    ASSERT_TRUE(journal->append(entry("b", "")));
    ASSERT_TRUE(journal->append(entry("a", "again")));
  }
  const auto journal = EvalJournal::open(path, R"({"model": "m"})");
  ASSERT_TRUE(journal) << journal.error().message();
  ASSERT_EQ(journal->done().size(), 2u);
  EXPECT_EQ(journal->done()[0].hypothesis, "again");
  EXPECT_EQ(journal->done()[0].warnings.size(), 1u);
  EXPECT_EQ(journal->done()[1].audio, "b.wav");
  EXPECT_EQ(journal->done()[1].wall, 0.5);
}

TEST(EvalJournal, ALineThatWasCutShortIsDoneAgain) {
  const testing::TestFiles files;
  const auto path = files.path("r.partial");
  {
    auto journal = EvalJournal::open(path, "{}");
    ASSERT_TRUE(journal->append(entry("a", "x")));
    ASSERT_TRUE(journal->append(entry("b", "y")));
  }
  const auto whole = files.read("r.partial");
  for (std::size_t size = 0; size < whole.size(); ++size) {  // a crash after any byte
    files.write("r.partial", whole.substr(0, size));
    auto journal = EvalJournal::open(path, "{}");
    ASSERT_TRUE(journal) << size << journal.error().message();
    const auto lines =
        std::count(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size), '\n');
    EXPECT_EQ(static_cast<std::ptrdiff_t>(journal->done().size()),
              std::max<std::ptrdiff_t>(lines - 1, 0))
        << size;
    ASSERT_TRUE(journal->append(entry("c", "z")));
    EXPECT_EQ(files.read("r.partial").back(), '\n');
    const auto again = parse_journal(files.read("r.partial"), path);
    ASSERT_TRUE(again) << size;
    EXPECT_EQ(again->entries.back().id, "c");
  }
}

TEST(EvalJournal, AnotherConfigurationIsRefusedByTheNameOfWhatChanged) {
  const testing::TestFiles files;
  const auto path = files.path("r.partial");
  ASSERT_TRUE(
      EvalJournal::open(path, R"({"decoding": {"beam_size": 1, "task": "t"}, "files": 3})"));
  const auto changed =
      EvalJournal::open(path, R"({"decoding": {"beam_size": 5, "task": "t"}, "files": 3})");
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(changed.error().what, HasSubstr("decoding.beam_size: 1 there, 5 now"));
  EXPECT_THAT(changed.error().what, ::testing::Not(HasSubstr("task")));
}

TEST(EvalJournal, OtherFilesAndDamagedLinesAreRefusedAndLeftAlone) {
  const testing::TestFiles files;
  for (const auto* text : {"some text", "{\"format\": \"other\"}\n", "[1]\n"}) {
    const auto path = files.write("x", text);
    EXPECT_THAT(EvalJournal::open(path, "{}").error().what, HasSubstr("is not a partial result"))
        << text;
    EXPECT_EQ(files.read("x"), text);
  }
  const auto path = files.path("r.partial");
  { ASSERT_TRUE(EvalJournal::open(path, "{}")->append(entry("a", "x"))); }
  files.write("r.partial", files.read("r.partial") + "{\"set\": 1}\n");
  EXPECT_THAT(EvalJournal::open(path, "{}").error().what, HasSubstr("line 3 is damaged"));
}

TEST(EvalJournal, OnlyOneWritesAtATime) {
  const testing::TestFiles files;
  auto first = EvalJournal::open(files.path("r.partial"), "{}");
  ASSERT_TRUE(first);
  EXPECT_THAT(EvalJournal::open(files.path("r.partial"), "{}").error().what,
              HasSubstr("another evaluation"));
  ASSERT_TRUE(first->remove());
  EXPECT_TRUE(EvalJournal::open(files.path("r.partial"), "{}"));
}

}  // namespace
}  // namespace oasr::eval
