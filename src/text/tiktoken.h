// Token ranks in tiktoken's files, and those of Whisper that come with the library.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/tokenizer.h"

namespace oasr {

// The tokens of a tiktoken file by rank: lines of base64 and rank, ranks 0, 1, 2, … in any order.
// `where` names the file in errors.
Result<std::vector<std::string>> parse_tiktoken(std::string_view text, std::string_view where);

// OpenAI's ranks (MIT licence), for checkpoints without a vocabulary: of the multilingual models
// (50257 tokens) or of the English ones (50256).
TokenizerSource bundled_whisper_ranks(bool multilingual);

}  // namespace oasr
