// Dimensions and ids from the documents of a checkpoint.
#include "models/whisper/tokens.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "models/whisper/config.h"
#include "models/whisper/known_sizes.h"
#include "text/tiktoken.h"

namespace oasr::models::whisper {
namespace {

constexpr std::string_view kBaseDims =
    R"({"n_mels": 80, "n_vocab": 51865, "n_audio_ctx": 1500, "n_audio_state": 512, "n_audio_head": 8,
        "n_audio_layer": 6, "n_text_ctx": 448, "n_text_state": 512, "n_text_head": 8, "n_text_layer": 6})";

Checkpoint openai(std::string dims = std::string(kBaseDims)) {
  Checkpoint checkpoint;
  checkpoint.container = "openai";
  checkpoint.documents["dims"] = std::move(dims);
  return checkpoint;
}

std::string with(std::string_view from, std::string_view to) {
  std::string dims(kBaseDims);
  return dims.replace(dims.find(from), from.size(), to);
}

std::shared_ptr<const Tokenizer> tokenizer(int vocabulary_size) {
  return make_tokenizer(bundled_whisper_ranks(vocabulary_size > kEnglishVocabulary),
                        whisper_special_tokens(vocabulary_size))
      .value();
}

AedTokens tokens_of(const Checkpoint& checkpoint) {
  const Config config = read_config(checkpoint).value();
  return read_tokens(checkpoint, config, *tokenizer(config.vocab_size)).value();
}

std::string error_of(const Checkpoint& checkpoint) {
  const auto config = read_config(checkpoint);
  if (!config) return config.error().message();
  const auto tokens = read_tokens(checkpoint, *config, *tokenizer(config->vocab_size));
  return tokens ? "" : tokens.error().message();
}

TEST(WhisperConfig, ReadsOpenAisDims) {
  const Config config = read_config(openai()).value();
  EXPECT_EQ(config.d_model, 512);
  EXPECT_EQ(config.encoder_ffn_dim, 2048);
  EXPECT_EQ(config.window_frames(), 3000);
  EXPECT_EQ(config.decoder_head_dim(), 64);
  EXPECT_TRUE(is_whisper(openai()));
}

TEST(WhisperConfig, NamesTheNumberThatIsWrong) {
  EXPECT_NE(error_of(openai(with("\"n_mels\": 80, ", ""))).find("has no 'n_mels'"), std::string::npos);
  EXPECT_NE(error_of(openai(with("\"n_mels\": 80", "\"n_mels\": -1"))).find("but is -1"), std::string::npos);
  EXPECT_NE(error_of(openai(with("\"n_mels\": 80", "\"n_mels\": 8e1"))).find("must be an integer"), std::string::npos);
  EXPECT_NE(error_of(openai(with("\"n_text_layer\": 6", "\"n_text_layer\": 2147483648"))).find("1 to 256"),
            std::string::npos);
  EXPECT_NE(error_of(openai(with("\"n_text_state\": 512", "\"n_text_state\": 256"))).find("n_text_state differs"),
            std::string::npos);
  EXPECT_NE(error_of(openai(with("\"n_text_head\": 8", "\"n_text_head\": 7"))).find("7 decoder heads"),
            std::string::npos);
}

TEST(WhisperConfig, RefusesACTranslate2ModelWithAnotherActivation) {
  Checkpoint checkpoint = openai();
  checkpoint.container = "ctranslate2";
  checkpoint.documents["scalars"] = R"({"decoder/activation": 3.0, "decoder/pre_norm": 1.0})";
  EXPECT_EQ(error_of(checkpoint), "");
  checkpoint.documents["scalars"] = R"({"decoder/activation": 0.0})";
  EXPECT_NE(error_of(checkpoint).find("decoder/activation"), std::string::npos);
}

TEST(WhisperTokens, FindsIdsByNameInTheMultilingualVocabulary) {
  const AedTokens tokens = tokens_of(openai());
  EXPECT_EQ(tokens.eot, 50257);
  EXPECT_EQ(tokens.sot, 50258);
  EXPECT_EQ(tokens.translate, 50358);
  EXPECT_EQ(tokens.transcribe, 50359);
  EXPECT_EQ(tokens.no_timestamps, 50363);
  EXPECT_EQ(tokens.timestamp_begin, 50364);
  ASSERT_EQ(tokens.languages.size(), 99u);
  EXPECT_EQ(tokens.languages.front(), (std::pair<std::string, TokenId>("en", 50259)));
  EXPECT_EQ(tokens.languages.back(), (std::pair<std::string, TokenId>("su", 50357)));
  EXPECT_EQ(tokens.begin_suppress, (std::vector<TokenId>{220, 50257}));
}

TEST(WhisperTokens, ShiftsTheIdsAfterTheHundredthLanguage) {
  const AedTokens tokens = tokens_of(openai(with("51865", "51866")));
  EXPECT_EQ(tokens.languages.size(), 100u);
  EXPECT_EQ(tokens.transcribe, 50360);
  EXPECT_EQ(tokens.timestamp_begin, 50365);
}

TEST(WhisperTokens, HasNoLanguagesInTheEnglishVocabulary) {
  const AedTokens tokens = tokens_of(openai(with("51865", "51864")));
  EXPECT_TRUE(tokens.languages.empty());
  EXPECT_EQ(tokens.eot, 50256);
  EXPECT_EQ(tokens.begin_suppress, (std::vector<TokenId>{220, 50256}));
}

TEST(WhisperTokens, SuppressesAnnotationsAndSpecialTokens) {
  const AedTokens tokens = tokens_of(openai());
  EXPECT_EQ(tokens.suppress.size(), 88u);  // as in the published generation_config.json
  for (const TokenId id : {1, 2, 7, 50254, 50258, 50358, 50359, 50360, 50361, 50362}) {
    EXPECT_TRUE(std::ranges::binary_search(tokens.suppress, id)) << id;
  }
  EXPECT_FALSE(std::ranges::binary_search(tokens.suppress, tokens.eot));
}

TEST(WhisperTokens, TakesSetsAndHeadsFromTheGenerationConfigFirst) {
  Checkpoint checkpoint = openai();
  checkpoint.documents["generation_config.json"] =
      R"({"suppress_tokens": [5], "begin_suppress_tokens": [6], "alignment_heads": null})";
  checkpoint.documents["config.json"] =
      R"({"suppress_ids": [9], "suppress_ids_begin": [9], "alignment_heads": [[1, 7], [5, 0]]})";
  const AedTokens tokens = tokens_of(checkpoint);
  EXPECT_EQ(tokens.suppress.front(), 5);
  EXPECT_EQ(tokens.suppress.size(), 7u);  // and the six special tokens
  EXPECT_EQ(tokens.begin_suppress, (std::vector<TokenId>{6}));
  EXPECT_EQ(tokens.alignment_heads, (std::vector<std::pair<int, int>>{{1, 7}, {5, 0}}));
}

TEST(WhisperTokens, NamesAnIdOrHeadOutsideTheModel) {
  for (const auto& [document, key] :
       {std::pair{R"({"suppress_tokens": [51865]})", "suppress_tokens"},
        std::pair{R"({"begin_suppress_tokens": 3})", "begin_suppress_tokens"},
        std::pair{R"({"alignment_heads": [[6, 0]]})", "alignment_heads"},
        std::pair{R"({"alignment_heads": [[0, 8]]})", "alignment_heads"},
        std::pair{R"({"alignment_heads": [[0]]})", "alignment_heads"}}) {
    Checkpoint checkpoint = openai();
    checkpoint.documents["generation_config.json"] = document;
    EXPECT_NE(error_of(checkpoint).find(key), std::string::npos) << document;
  }
}

TEST(WhisperTokens, NamesTheTokenThatATokenizerLacks) {
  const auto bare = make_tokenizer(bundled_whisper_ranks(true)).value();
  const Checkpoint checkpoint = openai();
  const auto tokens = read_tokens(checkpoint, read_config(checkpoint).value(), *bare);
  ASSERT_FALSE(tokens);
  EXPECT_NE(tokens.error().message().find("has no token <|endoftext|>"), std::string::npos);
}

TEST(KnownSizes, AreRecognisedByTheirDimensions) {
  Config config = read_config(openai()).value();
  ASSERT_NE(known_size(config, true), nullptr);
  EXPECT_EQ(known_size(config, true)->name, "base");
  EXPECT_EQ(known_size(config, false)->name, "base.en");
  EXPECT_EQ(default_alignment_heads(config, true).size(), 8u);
  config.decoder_layers = 3;
  EXPECT_EQ(known_size(config, true), nullptr);
  const auto heads = default_alignment_heads(config, true);
  EXPECT_EQ(heads.size(), 16u);  // layers 1 and 2 of three
  EXPECT_EQ(heads.front(), (AlignmentHead{1, 0}));
}

}  // namespace
}  // namespace oasr::models::whisper
