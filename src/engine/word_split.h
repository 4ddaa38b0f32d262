// Tokens grouped into words, the unit of word timestamps.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace oasr::engine {

struct TokenWord {
  std::string text;  // valid UTF-8, with its leading space
  std::vector<TokenId> tokens;
};

// Words of text tokens. At spaces and punctuation, or at every character for the languages that
// write without spaces (zh, ja, th, lo, my, yue). Tokens that split a character stay together.
std::vector<TokenWord> split_words(std::span<const TokenId> tokens, const Tokenizer& tokenizer,
                                   std::string_view language);

}  // namespace oasr::engine
