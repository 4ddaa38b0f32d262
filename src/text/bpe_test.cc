#include "text/bpe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "text/byte_alphabet.h"
#include "text/compression.h"
#include "text/pretokenizer.h"

namespace oasr {
namespace {

std::vector<std::string> pieces(std::string_view pattern, std::string_view text) {
  const auto pretokenizer = Pretokenizer::make(pattern);
  std::vector<std::string> out;
  pretokenizer->split(text, [&](std::string_view piece) { out.emplace_back(piece); });
  return out;
}

TEST(ByteAlphabet, SpellsEveryByteByOnePrintableCharacter) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  EXPECT_EQ(from_byte_alphabet(to_byte_alphabet(bytes)), bytes);
  EXPECT_EQ(to_byte_alphabet(" the\n"), "ĠtheĊ");
  EXPECT_EQ(to_byte_alphabet("\xAD\x7F"), "\u0143\u0121");
  EXPECT_EQ(from_byte_alphabet("a b"), std::nullopt);  // a space is not in it
  EXPECT_EQ(from_byte_alphabet("\u4E2D"), std::nullopt);
  EXPECT_EQ(from_byte_alphabet("\xFF"), std::nullopt);
}

TEST(Pretokenizer, CutsAsGpt2Does) {
  using Pieces = std::vector<std::string>;
  EXPECT_EQ(pieces(kGpt2Pattern, "Hello world's 12 cats!?  \n x"),
            (Pieces{"Hello", " world", "'s", " 12", " cats", "!?", "  \n", " x"}));
  EXPECT_EQ(pieces(kGpt2Pattern, "a\u3000\u3000b\u180Ec\u0085"),
            (Pieces{"a", "\u3000", "\u3000", "b", "\u180E", "c", "\u0085"}));
  EXPECT_EQ(pieces(kGpt2Pattern, ""), Pieces{});
  EXPECT_EQ(pieces("", "a b"), Pieces{"a b"});
}

TEST(Pretokenizer, LosesNoByteOfInvalidUtf8) {
  EXPECT_EQ(pieces(kGpt2Pattern, "ab\xFF\xFE c\xE4\xB8"),
            (std::vector<std::string>{"ab", "\xFF\xFE", " c", "\xE4\xB8"}));
}

TEST(Pretokenizer, LeavesWhatThePatternSkipsAsPieces) {
  EXPECT_EQ(pieces("b", "abcb"), (std::vector<std::string>{"a", "b", "c", "b"}));
  EXPECT_EQ(pieces("x*", "ab"), std::vector<std::string>{"ab"});
  EXPECT_EQ(pieces("(?=a)|b", "aab"), (std::vector<std::string>{"aa", "b"}));
}

TEST(Pretokenizer, RefusesPatternsThatDoNotCompile) {
  for (const std::string& pattern :
       {std::string("("), std::string("[z-a]"), std::string("\\C"), std::string(5000, 'a')}) {
    const auto made = Pretokenizer::make(pattern);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, ErrorCode::unsupported);
  }
}

TEST(Pretokenizer, GivesUpOnEndlessBacktracking) {
  const std::string text = std::string(60, 'a') + "!";
  std::string joined;
  for (const std::string& piece : pieces("(a+)+$", text)) joined += piece;
  EXPECT_EQ(joined, text);
}

// Random tokens over two letters, so that merges overlap much.
std::vector<std::string> random_tokens(std::mt19937& random) {
  std::vector<std::string> tokens = {"a", "b", "c"};
  while (tokens.size() < 40) {
    const std::string joint = tokens[random() % tokens.size()] + tokens[random() % tokens.size()];
    if (std::find(tokens.begin(), tokens.end(), joint) == tokens.end()) tokens.push_back(joint);
  }
  return tokens;
}

// The definition: merge the first pair of the lowest rank until there is none.
std::vector<TokenId> slow_bpe(const std::vector<std::string>& tokens, const std::string& piece) {
  std::vector<std::string> parts;
  for (const char c : piece) parts.emplace_back(1, c);
  const auto rank = [&](const std::string& bytes) {
    return std::find(tokens.begin(), tokens.end(), bytes) - tokens.begin();
  };
  while (true) {
    std::ptrdiff_t best = static_cast<std::ptrdiff_t>(tokens.size());
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      if (rank(parts[i] + parts[i + 1]) < best) best = rank(parts[i] + parts[i + 1]), at = i;
    }
    if (best == static_cast<std::ptrdiff_t>(tokens.size())) break;
    parts[at] += parts[at + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
  std::vector<TokenId> ids;
  for (const auto& part : parts) ids.push_back(static_cast<TokenId>(rank(part)));
  return ids;
}

TEST(BpeEncoder, MergesTheLowestRankFromTheLeft) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    const auto tokens = random_tokens(random);
    const TokenTable table(tokens, std::vector<bool>(tokens.size()));
    const BpeEncoder encoder(table, std::nullopt, false);
    for (int i = 0; i < 40; ++i) {
      std::string piece;
      for (auto n = random() % 40; n > 0; --n) piece += static_cast<char>('a' + random() % 3);
      std::vector<TokenId> ids;
      encoder.encode(piece, ids);
      ASSERT_EQ(ids, slow_bpe(tokens, piece)) << piece;
    }
  }
}

TEST(BpeEncoder, FollowsTheRanksOfMergesRatherThanIds) {
  const std::vector<std::string> tokens = {"a", "b", "c", "ab", "bc"};
  const TokenTable table(tokens, std::vector<bool>(5));
  const BpeEncoder encoder(table,
                           BpeEncoder::Merges{{BpeEncoder::pair_key(1, 2), {0, 4}},
                                              {BpeEncoder::pair_key(0, 1), {1, 3}}},
                           false);
  std::vector<TokenId> ids;
  encoder.encode("abc", ids);
  EXPECT_EQ(ids, (std::vector<TokenId>{0, 4}));
}

TEST(BpeEncoder, TakesAWholeWordOnlyWhenAsked) {
  const std::vector<std::string> tokens = {"a", "b", "c", "abc"};  // no merge leads to abc
  const TokenTable table(tokens, std::vector<bool>(4));
  std::vector<TokenId> ids;
  BpeEncoder(table, std::nullopt, true).encode("abc", ids);
  BpeEncoder(table, std::nullopt, false).encode("abc", ids);
  EXPECT_EQ(ids, (std::vector<TokenId>{3, 0, 1, 2}));
}

TEST(BpeEncoder, LeavesOutBytesWithoutATokenAndHiddenTokens) {
  const TokenTable table({"a", "b", "ab"}, {false, false, true});
  std::vector<TokenId> ids;
  BpeEncoder(table, std::nullopt, true).encode("axb", ids);
  BpeEncoder(table, std::nullopt, true).encode("ab", ids);
  BpeEncoder(table, std::nullopt, true).encode("", ids);
  EXPECT_EQ(ids, (std::vector<TokenId>{0, 1, 0, 1}));
}

TEST(CompressionRatio, IsThatOfPythonsZlib) {
  // len(text.encode()) / len(zlib.compress(text.encode()))
  EXPECT_DOUBLE_EQ(compression_ratio("hello"), 5.0 / 13);
  EXPECT_DOUBLE_EQ(compression_ratio("the the the the the the the the the the the the "),
                   48.0 / 15);
  EXPECT_DOUBLE_EQ(
      compression_ratio(" And so my fellow Americans ask not what your country can do for you"),
      68.0 / 66);
  EXPECT_EQ(compression_ratio(""), 0.0);
}

}  // namespace
}  // namespace oasr
