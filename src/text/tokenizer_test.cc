#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <random>

#include "base/fs.h"
#include "base/json.h"
#include "testing/paths.h"
#include "text/byte_alphabet.h"
#include "text/tiktoken.h"

namespace oasr {
namespace {

std::shared_ptr<const Tokenizer> whisper_tokenizer(bool multilingual) {
  return *make_tokenizer(bundled_whisper_ranks(multilingual),
                         whisper_special_tokens(multilingual ? 51865 : 51864));
}

// The lines of a checked-in file of JSON lines.
std::vector<Json> golden(const char* name) {
  const std::string text = *read_text_file(testing::test_data(name));
  std::vector<Json> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(*parse_json(std::string_view(text).substr(at, end - at), name));
    at = end + 1;
  }
  return lines;
}

// Ids of the reference (tiktoken with Whisper's ranks), for both vocabularies.
void expect_golden(const Tokenizer& tokenizer, const char* vocabulary) {
  const auto lines = golden("tokenizer_golden.jsonl");
  ASSERT_GT(lines.size(), 100U);
  for (const Json& line : lines) {
    const auto text = line.at("text").get<std::string>();
    EXPECT_EQ(tokenizer.encode(text), line.at(vocabulary).get<std::vector<TokenId>>()) << text;
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  }
}

TEST(BundledRanks, EncodeAsTheReferenceDoes) {
  expect_golden(*whisper_tokenizer(true), "multilingual");
  expect_golden(*whisper_tokenizer(false), "english");
}

TEST(Vocabulary, InTheByteAlphabetEncodesAsItsRanksDo) {
  TokenizerSource source = bundled_whisper_ranks(true);
  source.kind = "vocabulary";
  for (std::string& token : source.tokens) token = to_byte_alphabet(token);
  for (const auto& [name, id] : whisper_special_tokens(51865)) source.tokens.push_back(name);
  const auto tokenizer = *make_tokenizer(source);
  expect_golden(*tokenizer, "multilingual");
  EXPECT_EQ(tokenizer->id_of("<|transcribe|>"), 50359);
  EXPECT_TRUE(tokenizer->is_special(50257));
  EXPECT_EQ(tokenizer->size(), 51865);
}

TEST(Tokenizer, RoundTripsAnyBytes) {
  std::mt19937 random(3);
  for (const bool multilingual : {true, false}) {
    const auto tokenizer = whisper_tokenizer(multilingual);
    for (int round = 0; round < 300; ++round) {
      std::string bytes;
      for (auto n = random() % 80; n > 0; --n)
        bytes += static_cast<char>(random() % 3 == 0 ? 'a' + random() % 8 : random());
      ASSERT_EQ(tokenizer->decode(tokenizer->encode(bytes)), bytes);
    }
  }
}

TEST(Tokenizer, IsNotQuadraticInALongWord) {
  // A million letters without a space: seconds if quadratic in a thousandth of them.
  const auto tokenizer = whisper_tokenizer(true);
  std::string word;
  std::mt19937 random(4);
  for (int i = 0; i < 1'000'000; ++i) word += static_cast<char>('a' + random() % 26);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(word)), word);
  const std::string spaces(1'000'000, ' ');
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(spaces)), spaces);
}

TEST(Tokenizer, SpellsOutSpecialTokensInText) {
  const auto tokenizer = whisper_tokenizer(true);
  for (const TokenId id : tokenizer->encode("<|endoftext|><|en|>")) EXPECT_LT(id, 50257);
}

TEST(Tokenizer, DecodesSpecialAndUnknownIdsToNothing) {
  const auto tokenizer = whisper_tokenizer(true);
  const auto ids = tokenizer->encode(" hello");
  std::vector<TokenId> mixed = {50258, 50364};
  mixed.insert(mixed.end(), ids.begin(), ids.end());
  for (const TokenId id : {50257, 51864, 51865, -1, 1 << 30}) mixed.push_back(id);
  EXPECT_EQ(tokenizer->decode(mixed), " hello");
  EXPECT_EQ(tokenizer->token_bytes(50259), "<|en|>");
  EXPECT_EQ(tokenizer->token_bytes(-1), "");
  EXPECT_EQ(tokenizer->token_bytes(1 << 30), "");
  EXPECT_FALSE(tokenizer->is_special(-1));
  EXPECT_FALSE(tokenizer->is_special(50256));
}

TEST(Tokenizer, GivesCharactersThatEndInsideATokenByteByByte) {
  const auto tokenizer = whisper_tokenizer(false);
  const auto ids = tokenizer->encode("\U00020BB7");
  ASSERT_GT(ids.size(), 1U);
  Utf8Stream stream;
  std::string text;
  for (const TokenId id : ids) text += stream.push(tokenizer->token_bytes(id));
  EXPECT_EQ(text, "\U00020BB7");
}

TEST(MakeTokenizer, RefusesASourceWithoutATokenizer) {
  const auto made = make_tokenizer({});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::not_found);
}

TEST(MakeTokenizer, RefusesToCallAnOrdinaryTokenSpecial) {
  const std::vector<std::pair<std::string, TokenId>> special = {{"<|endoftext|>", 100}};
  const auto made = make_tokenizer(bundled_whisper_ranks(true), special);
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().what.find("<|endoftext|>"), std::string::npos);
}

TEST(ParseTiktoken, RefusesWhatIsNotTokensAndRanks) {
  EXPECT_TRUE(parse_tiktoken("IQ== 1\nIg== 0\n", "x"));
  EXPECT_EQ(*parse_tiktoken("IQ== 1\nIg== 0", "x"), (std::vector<std::string>{"\"", "!"}));
  for (const char* text : {"IQ==\n", "IQ== a\n", "IQ== 1\n", "IQ== 0\nIg== 0\n", "I*== 0\n",
                           "IQ== -1\n", "\n", "IQ== 99999999999999999999\n"}) {
    const auto parsed = parse_tiktoken(text, "x.tiktoken");
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::bad_checkpoint);
  }
}

// The whole of a real checkpoint's containers against the bundled ranks: same decode, and the same
// encode where the container has all merges (the multilingual merges of Hugging Face lack "Ġ t").
TEST(RealCheckpoints, HoldTheVocabularyOfTheBundledRanks) {
  for (const bool multilingual : {true, false}) {
    const auto folder = testing::real_weights(multilingual ? "base" : "tiny.en", "hf");
    if (!folder) GTEST_SKIP() << "no real weights (set OASR_TEST_WEIGHTS)";
    const auto special = whisper_special_tokens(multilingual ? 51865 : 51864);
    TokenizerSource json{.kind = "tokenizer_json",
                         .tokenizer_json = *read_text_file(*folder / "tokenizer.json")};
    TokenizerSource files{.kind = "vocab_merges",
                          .vocab_json = *read_text_file(*folder / "vocab.json"),
                          .merges_txt = *read_text_file(*folder / "merges.txt"),
                          .added_tokens_json = *read_text_file(*folder / "added_tokens.json")};
    const auto reference = whisper_tokenizer(multilingual);
    for (const TokenizerSource& source : {json, files}) {
      const auto made = make_tokenizer(source, special);
      ASSERT_TRUE(made) << made.error().message();
      const Tokenizer& tokenizer = **made;
      ASSERT_EQ(tokenizer.size(), reference->size());
      EXPECT_EQ(tokenizer.special_tokens().size(), special.size());
      for (TokenId id = 0; id < tokenizer.size(); ++id) {
        ASSERT_EQ(tokenizer.is_special(id), reference->is_special(id)) << id;
        if (tokenizer.is_special(id)) continue;
        ASSERT_EQ(tokenizer.token_bytes(id), reference->token_bytes(id)) << id;
      }
      for (const auto& [name, id] : special) EXPECT_EQ(tokenizer.id_of(name), id) << name;
      if (!multilingual) expect_golden(tokenizer, "english");
    }
  }
}

}  // namespace
}  // namespace oasr
