#include "engine/plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/check.h"
#include "engine/validate.h"
#include "features/log_mel.h"
#include "text/tokenizer.h"

namespace oasr::engine {
namespace {

std::string stripped(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

std::vector<TokenId> encode_prompt(const models::AedModel& model, const std::string& text) {
  const std::string core = stripped(text);
  if (core.empty()) return {};
  return model.tokenizer().encode(" " + core);
}

// The given set (-1: the checkpoint's) and the ids that would start another transcript.
std::vector<TokenId> suppressed_tokens(const TranscribeOptions& options,
                                       const models::AedTokens& ids) {
  std::vector<TokenId> all{ids.transcribe, ids.translate, ids.sot,
                           ids.sot_prev,   ids.sot_lm,    ids.no_speech};
  for (const TokenId id : options.suppress_tokens) {
    if (id >= 0) all.push_back(id);
    if (id == -1) all.insert(all.end(), ids.suppress.begin(), ids.suppress.end());
  }
  return all;
}

decode::LogitRules make_rules(const TranscribeOptions& options, const models::AedModel& model) {
  const models::AedTokens& ids = model.tokens();
  decode::LogitRules rules;
  if (options.suppress_blank) rules.push_back(decode::suppress_at_begin(ids.begin_suppress));
  rules.push_back(decode::suppress_tokens(suppressed_tokens(options, ids)));
  if (options.timestamps) {
    std::optional<int> max_initial;
    if (options.max_initial_timestamp > 0) {
      max_initial = static_cast<int>(std::nearbyint(options.max_initial_timestamp / 0.02));
    }
    rules.push_back(decode::timestamp_rules(
        {.eot = ids.eot, .no_timestamps = ids.no_timestamps, .begin = ids.timestamp_begin},
        max_initial));
  }
  return rules;
}

std::vector<std::pair<std::int64_t, std::int64_t>> make_clips(const std::vector<double>& seconds) {
  const auto frame = [](double s) { return static_cast<std::int64_t>(std::nearbyint(s * 100)); };
  std::vector<std::pair<std::int64_t, std::int64_t>> clips;
  for (std::size_t i = 0; i < seconds.size(); i += 2) {
    clips.emplace_back(frame(seconds[i]), i + 1 < seconds.size() ? frame(seconds[i + 1]) : -1);
  }
  if (clips.empty()) clips.emplace_back(0, -1);
  return clips;
}

}  // namespace

decode::SearchOptions Plan::search(int attempt) const {
  const double temperature = options.temperatures[static_cast<std::size_t>(attempt)];
  decode::SearchOptions search;
  search.temperature = temperature;
  search.beam_size = temperature > 0 ? 1 : options.beam_size.value_or(1);
  search.best_of = temperature > 0 ? options.best_of : 1;
  search.patience = options.patience;
  search.length_penalty = options.length_penalty;
  search.max_new_tokens = max_new_tokens;
  search.random.seed = options.seed;
  search.random.attempt = static_cast<std::uint32_t>(attempt);
  return search;
}

std::vector<TokenId> Plan::start_sequence(const std::string& language_code) const {
  const models::AedTokens& ids = model->tokens();
  std::vector<TokenId> sequence{ids.sot};
  if (!model->multilingual()) return sequence;
  const auto found = std::find_if(ids.languages.begin(), ids.languages.end(),
                                  [&](const auto& entry) { return entry.first == language_code; });
  CHECK(found != ids.languages.end(), "the language was validated");
  sequence.push_back(found->second);
  sequence.push_back(task);
  return sequence;
}

Result<Plan> make_plan(const TranscribeOptions& options, const models::AedModel& model) {
  TRY(validate_options(options, model));
  if (model.window_frames() != kWhisperFrames) {
    return unexpected(ErrorCode::unsupported,
                      "the model's windows have " + std::to_string(model.window_frames()) + " frames of 10 ms; only windows of " +
                          std::to_string(kWhisperFrames) + " are decoded",
                      "max_source_positions", "use a checkpoint with max_source_positions 1500, as all of Whisper's");
  }
  Plan plan;
  plan.model = &model;
  plan.options = options;
  if (!model.multilingual()) {
    plan.language = "en";
  } else if (options.language != "auto") {
    plan.language = whisper_language_code(options.language);
  }
  plan.task = options.task == "translate" ? model.tokens().translate : model.tokens().transcribe;
  plan.rules = make_rules(options, model);
  plan.initial_prompt = encode_prompt(model, options.initial_prompt);
  plan.prefix = encode_prompt(model, options.prefix);
  plan.clips = make_clips(options.clip_timestamps);
  const int half = model.context_size() / 2;
  plan.max_new_tokens = options.max_new_tokens > 0 ? std::min(options.max_new_tokens, half) : half;
  for (std::size_t i = 0; i < options.temperatures.size(); ++i) {
    plan.rows = std::max(plan.rows, decode::rows_needed(plan.search(static_cast<int>(i))));
  }
  return plan;
}

}  // namespace oasr::engine
