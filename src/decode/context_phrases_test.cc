#include "decode/context_phrases.h"

#include <gtest/gtest.h>

namespace oasr::decode {
namespace {

std::shared_ptr<const Tokenizer> characters() {
  return *make_tokenizer({.kind = "units",
                          .origin = "t",
                          .units_txt = "<blank> 0\n<unk> 1\nA 2\nB 3\n▁ 4\n<sos/eos> 5\n"});
}

TEST(ContextPhrases, AreEncodedWithTheirWeights) {
  const std::vector<TextPhrase> phrases = {{" ab a", 1.5}, {"B", -2}};
  const auto encoded = *encode_phrases(*characters(), phrases);
  ASSERT_EQ(encoded.size(), 2u);
  EXPECT_EQ(encoded[0].tokens, (std::vector<TokenId>{2, 3, 4, 2}));
  EXPECT_EQ(encoded[0].weight, 1.5);
  EXPECT_EQ(encoded[1].tokens, std::vector<TokenId>{3});
  EXPECT_EQ(encoded[1].weight, -2);
}

TEST(ContextPhrases, ThatAreBlankOrCanNotBeWrittenAreRefusedByName) {
  const auto refused = [](std::string text) {
    const std::vector<TextPhrase> phrases = {{"A", 1}, {std::move(text), 1}};
    const auto encoded = encode_phrases(*characters(), phrases);
    return encoded ? std::string() : encoded.error().what;
  };
  EXPECT_EQ(refused(" \t"), "context phrase 2, ' \t', is blank");
  EXPECT_NE(refused("Aé").find("phrase 2, 'Aé', has characters"), std::string::npos);
  EXPECT_NE(refused("A\xFF").find("has characters"), std::string::npos);
}

TEST(ContextPhrases, NeedATokenizerThatEncodes) {
  const auto pieces =
      *make_tokenizer({.kind = "units", .origin = "units.txt", .units_txt = "<blank> 0\n▁HE 1\n"});
  const std::vector<TextPhrase> phrases = {{"HE", 1}};
  const auto refused = encode_phrases(*pieces, phrases);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  EXPECT_TRUE(encode_phrases(*pieces, {}));
}

}  // namespace
}  // namespace oasr::decode
