// Phrases that a caller writes as text, as tokens of a model.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "decode/context_graph.h"
#include "text/tokenizer.h"

namespace oasr::decode {

struct TextPhrase {
  std::string text;
  double weight = 0;  // as ContextPhrase::weight
};

// Errors: unsupported if the tokenizer can not encode; invalid_argument for a phrase that is blank
// or has a part that the model has no token for, with its number and text.
Result<std::vector<ContextPhrase>> encode_phrases(const Tokenizer& tokenizer,
                                                  std::span<const TextPhrase> phrases);

}  // namespace oasr::decode
