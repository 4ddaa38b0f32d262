#include "text/normalizer/normalizer.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/json.h"
#include "testing/paths.h"

namespace oasr {
namespace {

// Made by tools/normalizer_cases.py: rows [text, whisper-english, basic] of openai-whisper.
TEST(Normalizer, AgreesWithWhispersOnEveryCase) {
  std::ifstream file(testing::test_data("normalizer_golden.jsonl"));
  int cases = 0;
  for (std::string line; std::getline(file, line); ++cases) {
    const auto row = parse_json(line, "golden");
    ASSERT_TRUE(row) << line;
    const auto text = (*row)[0].get<std::string>();
    EXPECT_EQ(normalize(Normalizer::whisper_english, text), (*row)[1].get<std::string>()) << text;
    EXPECT_EQ(normalize(Normalizer::basic, text), (*row)[2].get<std::string>()) << text;
  }
  EXPECT_GT(cases, 100);
}

TEST(Normalizer, NoneChangesNothingButBadBytes) {
  EXPECT_EQ(normalize(Normalizer::none, " Mr.  X "), " Mr.  X ");
  EXPECT_EQ(normalize(Normalizer::none, "a\xFF"), "a\xEF\xBF\xBD");
}

// What WeNet's tools/compute-wer.py --char=1 makes of the texts, joined with spaces.
TEST(Normalizer, ChineseCharactersStandAloneAndLatinWordsStayWhole) {
  const auto tokens = [](const char* text) { return normalize(Normalizer::chinese_chars, text); };
  EXPECT_EQ(tokens("其中有两个"), "其 中 有 两 个");
  EXPECT_EQ(tokens("我用 iPhone 打call，好吗？"), "我 用 IPHONE 打 CALL 好 吗");
  EXPECT_EQ(tokens("<unk>你好<noise>"), "你 好");
  EXPECT_EQ(tokens("hello, world!"), "HELLO, WORLD!");  // within a word punctuation stays
  EXPECT_EQ(tokens("《红楼梦》 ！"), "红 楼 梦");
  EXPECT_EQ(tokens("caf\xC3\xA9s"), "CAF \xC3\x89S");  // a word ends where ASCII does
  EXPECT_EQ(tokens("   "), "");
}

// A multiplier multiplies what is below 1000, as in the reference: …567890 million is …567000 + 890
// million.
TEST(Normalizer, LongNumbersAreExact) {
  EXPECT_EQ(normalize(Normalizer::whisper_english, "123456789012345678901234567890 million"),
            "123456789012345678902124567000");
}

}  // namespace
}  // namespace oasr
