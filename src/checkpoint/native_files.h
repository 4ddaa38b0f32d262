// The files of a native checkpoint. Internal to checkpoint.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "text/tokenizer.h"

namespace oasr {

inline constexpr const char* kNativeWeights = "model.safetensors";
inline constexpr const char* kTokenLines = "tokens.txt";                 // TokenizerSource::tokens
inline constexpr std::size_t kMaxTokenizerFile = std::size_t{64} << 20;  // bytes

// Where each text of a TokenizerSource lies, byte for byte. A text that is empty has no file.
struct TokenizerText {
  std::string_view name;
  std::string TokenizerSource::*text;
};
inline constexpr std::array kTokenizerTexts = {
    TokenizerText{"added_tokens.json", &TokenizerSource::added_tokens_json},
    TokenizerText{"bpe.model", &TokenizerSource::sentencepiece_model},
    TokenizerText{"merges.txt", &TokenizerSource::merges_txt},
    TokenizerText{"tokenizer.json", &TokenizerSource::tokenizer_json},
    TokenizerText{"units.txt", &TokenizerSource::units_txt},
    TokenizerText{"vocab.json", &TokenizerSource::vocab_json},
};

}  // namespace oasr
