#include "decode/word_times.h"

#include <gtest/gtest.h>

namespace oasr::decode {
namespace {

std::shared_ptr<const Tokenizer> units() {
  return *make_tokenizer({.kind = "units",
                          .origin = "t",
                          .units_txt = "<blank> 0\n<unk> 1\n▁HE 2\nLLO 3\n▁WORLD 4\n你 5\n好 6\n"
                                       "▁ 7\nA 8\n你好啊 9\n<0xE4> 10\n<0xBD> 11\n<0xA0> 12\n"});
}

std::vector<CtcToken> tokens(std::vector<std::pair<TokenId, int>> list) {
  std::vector<CtcToken> made;
  for (const auto& [id, frame] : list) made.push_back({id, frame, 0.5});
  return made;
}

// Frames of 0.25 s: every time is exact.
constexpr TokenClock kClock{.seconds_per_frame = 0.25};

TEST(TokenSpans, ATokenOwnsTheFramesSinceTheOneBefore) {
  const auto spans = token_spans(tokens({{2, 4}, {3, 5}, {4, 12}}), kClock);
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[0].start, 1.0);
  EXPECT_EQ(spans[0].end, 1.25);
  EXPECT_EQ(spans[1].start, 1.25);
  EXPECT_EQ(spans[1].end, 1.5);
  EXPECT_EQ(spans[2].start, 1.5);
  EXPECT_EQ(spans[2].end, 3.25);
}

TEST(TokenSpans, ALimitKeepsPausesOutOfTokens) {
  TokenClock clock = kClock;
  clock.longest_token = 0.5;
  clock.offset = 10;
  const auto spans = token_spans(tokens({{2, 4}, {3, 5}, {4, 12}}), clock);
  EXPECT_EQ(spans[0].start, 11.0);
  EXPECT_EQ(spans[1].start, 11.25);
  EXPECT_EQ(spans[2].start, 12.75);
  EXPECT_EQ(spans[2].end, 13.25);
}

TEST(WordTimes, WordsBeginAtSpacesAndHoldTheirTokens) {
  auto list = tokens({{2, 4}, {3, 5}, {4, 12}});
  list[1].confidence = 1;
  const auto words = word_times(list, *units(), kClock);
  ASSERT_EQ(words.size(), 2u);
  EXPECT_EQ(words[0].text, " HELLO");
  EXPECT_EQ(words[0].start, 1.0);
  EXPECT_EQ(words[0].end, 1.5);
  EXPECT_EQ(words[0].confidence, 0.75);
  EXPECT_EQ(words[0].token_count, 2u);
  EXPECT_EQ(words[1].text, " WORLD");
  EXPECT_EQ(words[1].start, 1.5);
  EXPECT_EQ(words[1].end, 3.25);
  EXPECT_EQ(words[1].first_token, 2u);
}

TEST(WordTimes, EveryIdeographIsAWord) {
  const auto words = word_times(tokens({{8, 0}, {5, 1}, {6, 2}, {8, 3}}), *units(), kClock);
  ASSERT_EQ(words.size(), 4u);
  EXPECT_EQ(words[0].text, "A");
  EXPECT_EQ(words[1].text, "你");
  EXPECT_EQ(words[1].start, 0.25);
  EXPECT_EQ(words[1].end, 0.5);
  EXPECT_EQ(words[3].text, "A");
}

TEST(WordTimes, CharactersOfATokenShareItsTime) {
  const auto words = word_times(tokens({{8, 0}, {9, 3}}), *units(), kClock);
  ASSERT_EQ(words.size(), 4u);
  EXPECT_EQ(words[1].text, "你");
  EXPECT_EQ(words[1].start, 0.25);
  EXPECT_EQ(words[1].end, 0.5);
  EXPECT_EQ(words[3].text, "啊");
  EXPECT_EQ(words[3].start, 0.75);
  EXPECT_EQ(words[3].end, 1.0);
  EXPECT_EQ(words[3].first_token, 1u);
}

TEST(WordTimes, ASpaceTokenBelongsToNoWord) {
  const auto words = word_times(tokens({{8, 0}, {7, 3}, {8, 4}}), *units(), kClock);
  ASSERT_EQ(words.size(), 2u);
  EXPECT_EQ(words[1].text, " A");
  EXPECT_EQ(words[1].start, 1.0);
  EXPECT_EQ(words[1].token_count, 1u);
}

TEST(WordTimes, SpecialTokensSpellNothing) {
  const auto words = word_times(tokens({{8, 0}, {1, 3}, {8, 4}}), *units(), kClock);
  ASSERT_EQ(words.size(), 1u);
  EXPECT_EQ(words[0].text, "AA");
  EXPECT_TRUE(word_times(tokens({{1, 3}}), *units(), kClock).empty());
  EXPECT_TRUE(word_times({}, *units(), kClock).empty());
}

TEST(WordTimes, BytesJoinToCharacters) {
  const auto words = word_times(tokens({{10, 0}, {11, 1}, {12, 2}}), *units(), kClock);
  ASSERT_EQ(words.size(), 1u);
  EXPECT_EQ(words[0].text, "你");
  EXPECT_EQ(words[0].end, 0.75);
  const auto broken = word_times(tokens({{10, 0}, {8, 1}}), *units(), kClock);
  ASSERT_EQ(broken.size(), 1u);
  EXPECT_EQ(broken[0].text,
            "\xEF\xBF\xBD"
            "A");
}

}  // namespace
}  // namespace oasr::decode
