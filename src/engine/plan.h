// The options of one call in the form that decoding uses: checked, resolved, immutable.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "decode/logit_rules.h"
#include "decode/search.h"
#include "models/speech_model.h"
#include "oasr/options.h"

namespace oasr::engine {

struct Plan {
  const models::AedModel* model = nullptr;
  TranscribeOptions options;
  std::optional<std::string> language;  // a code; nothing: detect
  TokenId task = 0;                     // <|transcribe|> or <|translate|>
  decode::LogitRules rules;
  std::vector<TokenId> initial_prompt;
  std::vector<TokenId> prefix;
  std::vector<std::pair<std::int64_t, std::int64_t>> clips;  // frames [start, end); end -1: all
  int max_new_tokens = 0;
  int rows = 1;  // decoder rows that one window needs at most

  // The attempt at options.temperatures[attempt].
  decode::SearchOptions search(int attempt) const;
  // <|startoftranscript|>, language and task, as the model wants them.
  std::vector<TokenId> start_sequence(const std::string& language_code) const;
  // At most this many tokens of earlier text fit before the start sequence.
  int prompt_limit() const { return model->context_size() / 2 - 1; }
};

// Validates and resolves. The model must outlive the plan.
Result<Plan> make_plan(const TranscribeOptions& options, const models::AedModel& model);

}  // namespace oasr::engine
