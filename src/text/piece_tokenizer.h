// Tokenizers whose tokens are written out, with ▁ for a space. Internal to text.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/result.h"
#include "text/tokenizer.h"

namespace oasr {

// Of a source of kind "units" or "sentencepiece"; see make_tokenizer.
Result<std::shared_ptr<const Tokenizer>> make_piece_tokenizer(
    const TokenizerSource& source, std::span<const std::pair<std::string, TokenId>> special_tokens);

}  // namespace oasr
