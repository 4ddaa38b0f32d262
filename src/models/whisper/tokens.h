// The ids that Whisper decodes with: read from the tokenizer and the configuration, never assumed.
#pragma once

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "models/speech_model.h"
#include "models/whisper/config.h"
#include "text/tokenizer.h"

namespace oasr::models::whisper {

// Vocabulary of the English-only models; larger ones are multilingual.
inline constexpr int kEnglishVocabulary = 51864;

// generation_config.json's is_multilingual; without one, whether the vocabulary is larger than
// that of the English models (51864).
Result<bool> is_multilingual(const Checkpoint& checkpoint, const Config& config);

// Special ids by name; suppress sets and alignment heads from generation_config.json or config.json
// of the checkpoint, else as openai-whisper computes them. The special ids that must never be
// sampled are always in `suppress`. Errors name the token that the tokenizer does not have, or the
// key with an id or head outside the model.
Result<AedTokens> read_tokens(const Checkpoint& checkpoint, const Config& config,
                              const Tokenizer& tokenizer);

// Tokens of annotations that are not speech ("♪", "(", "[" …), as openai-whisper finds them.
std::vector<TokenId> non_speech_tokens(const Tokenizer& tokenizer);

}  // namespace oasr::models::whisper
