#include <gtest/gtest.h>

#include <algorithm>

#include "text/tokenizer.h"

namespace oasr {
namespace {

TokenId id_in(const std::vector<std::pair<std::string, TokenId>>& tokens, const std::string& name) {
  const auto found = std::find_if(tokens.begin(), tokens.end(),
                                  [&](const auto& token) { return token.first == name; });
  return found != tokens.end() ? found->second : -1;
}

TEST(WhisperSpecialTokens, HaveTheIdsOfTheThreeVocabularies) {
  struct Case {
    int size;
    TokenId eot, transcribe, no_speech, zero, cantonese;
  };
  for (const Case& c :
       {Case{51864, 50256, 50358, 50361, 50363, -1}, Case{51865, 50257, 50359, 50362, 50364, -1},
        Case{51866, 50257, 50360, 50363, 50365, 50358}}) {
    const auto tokens = whisper_special_tokens(c.size);
    EXPECT_EQ(id_in(tokens, "<|endoftext|>"), c.eot);
    EXPECT_EQ(id_in(tokens, "<|startoftranscript|>"), c.eot + 1);
    EXPECT_EQ(id_in(tokens, "<|en|>"), c.eot + 2);
    EXPECT_EQ(id_in(tokens, "<|transcribe|>"), c.transcribe);
    EXPECT_EQ(id_in(tokens, "<|translate|>"), c.transcribe - 1);
    EXPECT_EQ(id_in(tokens, "<|nospeech|>"), c.no_speech);
    EXPECT_EQ(id_in(tokens, "<|notimestamps|>"), c.no_speech + 1);
    EXPECT_EQ(id_in(tokens, "<|0.00|>"), c.zero);
    EXPECT_EQ(id_in(tokens, "<|1.08|>"), c.zero + 54);
    EXPECT_EQ(id_in(tokens, "<|30.00|>"), c.size - 1);
    EXPECT_EQ(id_in(tokens, "<|yue|>"), c.cantonese);
    EXPECT_EQ(tokens.back().second, c.size - 1);
  }
}

TEST(WhisperSpecialTokens, AreNoneForOtherVocabularies) {
  EXPECT_TRUE(whisper_special_tokens(613).empty());
  EXPECT_TRUE(whisper_special_tokens(0).empty());
  EXPECT_TRUE(whisper_special_tokens(-1).empty());
  EXPECT_EQ(whisper_special_tokens(60000).back().second, 51865);  // padded: no language beyond yue
}

TEST(WhisperLanguages, AreAHundredWithEnglishFirst) {
  EXPECT_EQ(whisper_languages().size(), 100U);
  EXPECT_EQ(whisper_languages().front().second, "english");
  EXPECT_EQ(whisper_languages().back().first, "yue");
}

TEST(WhisperLanguageCode, TakesCodesNamesAndAliasesInAnyCase) {
  EXPECT_EQ(whisper_language_code("de"), "de");
  EXPECT_EQ(whisper_language_code("German"), "de");
  EXPECT_EQ(whisper_language_code("CASTILIAN"), "es");
  EXPECT_EQ(whisper_language_code("haitian creole"), "ht");
  EXPECT_EQ(whisper_language_code("Mandarin"), "zh");
  EXPECT_EQ(whisper_language_code("klingon"), std::nullopt);
  EXPECT_EQ(whisper_language_code(""), std::nullopt);
}

}  // namespace
}  // namespace oasr
