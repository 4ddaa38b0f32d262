#include "text/word_split.h"

#include <gtest/gtest.h>

#include "base/fs.h"
#include "base/json.h"
#include "testing/paths.h"
#include "text/tiktoken.h"

namespace oasr {
namespace {

TEST(SplitToWords, DividesAsTheReferenceDoes) {
  const auto multilingual =
      *make_tokenizer(bundled_whisper_ranks(true), whisper_special_tokens(51865));
  const auto large = *make_tokenizer(bundled_whisper_ranks(true), whisper_special_tokens(51866));
  const std::string text = *read_text_file(testing::test_data("word_split_golden.jsonl"));
  std::size_t cases = 0;
  for (std::size_t at = 0; at < text.size(); ++cases) {
    const std::size_t end = text.find('\n', at);
    const Json line = *parse_json(std::string_view(text).substr(at, end - at), "golden");
    at = end + 1;
    const auto language = line.at("language").get<std::string>();
    const auto tokens = line.at("tokens").get<std::vector<TokenId>>();
    const auto words = split_to_words(language == "yue" ? *large : *multilingual, tokens, language);
    std::vector<std::string> texts;
    std::vector<std::vector<TokenId>> groups;
    for (const auto& word : words) texts.push_back(word.text), groups.push_back(word.tokens);
    EXPECT_EQ(texts, line.at("words").get<std::vector<std::string>>());
    EXPECT_EQ(groups, line.at("groups").get<std::vector<std::vector<TokenId>>>());
  }
  EXPECT_GT(cases, 40U);
}

TEST(SplitToWords, KeepsTokensWhoseBytesNeverBecomeUtf8) {
  const auto tokenizer =
      *make_tokenizer(bundled_whisper_ranks(true), whisper_special_tokens(51865));
  // The bytes F0, A0 of an unfinished character, then a letter, one token each.
  std::vector<TokenId> tokens;
  for (const char* byte : {"\xF0", "\xA0", "A"}) tokens.push_back(*tokenizer->id_of(byte));
  for (const char* language : {"zh", "en"}) {
    std::vector<TokenId> joined;
    for (const auto& word : split_to_words(*tokenizer, tokens, language)) {
      EXPECT_EQ(to_valid_utf8(word.text), word.text);
      joined.insert(joined.end(), word.tokens.begin(), word.tokens.end());
    }
    EXPECT_EQ(joined, tokens);
  }
  EXPECT_TRUE(split_to_words(*tokenizer, {}, "en").empty());
}

}  // namespace
}  // namespace oasr
