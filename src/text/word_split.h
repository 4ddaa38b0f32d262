// Tokens grouped into words, as Whisper does for word timestamps.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace oasr {

struct WordTokens {
  std::string text;             // valid UTF-8; special tokens by their text
  std::vector<TokenId> tokens;  // one or more
};

// The words of `tokens`, which they divide completely and in order. A word begins at a special
// token, at a space and at punctuation that stands alone; in `language` zh, ja, th, lo, my and
// yue, which write no spaces, every group of tokens that ends on a whole character is a word.
// `language` is a code; empty for English-only models. Tokens that the reference would drop
// because their bytes never become UTF-8 form a word at the end.
std::vector<WordTokens> split_to_words(const Tokenizer& tokenizer, std::span<const TokenId> tokens,
                                       std::string_view language);

}  // namespace oasr
