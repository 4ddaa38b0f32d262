#include "engine/validate.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/ctc_plan.h"
#include "text/tokenizer.h"

namespace oasr::engine {
namespace {

bool is_number(double value) { return std::isfinite(value); }

bool any_zero_temperature(const TranscribeOptions& options) {
  return std::any_of(options.temperatures.begin(), options.temperatures.end(),
                     [](double t) { return t == 0; });
}

bool any_positive_temperature(const TranscribeOptions& options) {
  return std::any_of(options.temperatures.begin(), options.temperatures.end(),
                     [](double t) { return t > 0; });
}

Status check_task(const TranscribeOptions& options) {
  if (options.task != "transcribe" && options.task != "translate") {
    return refuse("task", "'" + options.task + "' is not a task", "use transcribe or translate");
  }
  if (options.language == "auto" || whisper_language_code(options.language)) return {};
  return refuse("language", "'" + options.language + "' is not a language of Whisper",
                "use a code such as en or a name such as English");
}

// After check_task().
Status check_language(const TranscribeOptions& options, const models::AedModel& model) {
  if (!model.multilingual() && options.task == "translate") {
    return refuse("task", "this model knows English only and can not translate",
                  "use a multilingual model");
  }
  if (options.language == "auto") return {};
  const auto code = whisper_language_code(options.language);
  if (!model.multilingual()) {
    if (*code == "en") return {};
    return refuse("language", "this model knows English only, not '" + *code + "'",
                  "use a multilingual model");
  }
  const auto& known = model.tokens().languages;
  if (std::none_of(known.begin(), known.end(), [&](auto& entry) { return entry.first == *code; })) {
    return refuse("language", "this checkpoint has no token for '" + *code + "'",
                  "use another model or language");
  }
  return {};
}

// How many texts a search can give; a beam size that is not given is Whisper's, 1.
Status check_n_best(const TranscribeOptions& options) {
  int candidates = any_zero_temperature(options) ? options.beam_size.value_or(1) : options.best_of;
  if (any_positive_temperature(options)) candidates = std::min(candidates, options.best_of);
  if (options.n_best > candidates) {
    return refuse("n_best", "the search has only " + std::to_string(candidates) + " candidates",
                  "raise beam_size (temperature 0) and best_of (above 0)");
  }
  return {};
}

Status check_search(const TranscribeOptions& options) {
  constexpr int kMaxRows = 64;
  const int beam_size = options.beam_size.value_or(1);
  if (beam_size < 1 || beam_size > kMaxRows) {
    return refuse("beam_size", "the beam size must be 1 to 64");
  }
  if (options.best_of < 1 || options.best_of > kMaxRows) {
    return refuse("best_of", "best_of must be 1 to 64");
  }
  if (options.temperatures.empty()) {
    return refuse("temperatures", "no temperature is given", "give 0 for greedy or beam search");
  }
  for (const double t : options.temperatures) {
    if (!is_number(t) || t < 0 || (t > 0 && t < 0.01) || t > 100) {
      return refuse("temperatures", "a temperature must be 0 or 0.01 to 100");
    }
  }
  if (beam_size > 1 && !any_zero_temperature(options)) {
    return refuse("beam_size",
                  "beam search needs a temperature of 0, and only higher ones are given",
                  "add 0 to the temperatures, or use best_of");
  }
  if (!is_number(options.patience) || options.patience <= 0 || options.patience > 16 ||
      std::nearbyint(beam_size * options.patience) < 1) {
    return refuse("patience",
                  "beam_size times patience must round to 1 or more, patience be <= 16");
  }
  if (options.patience != 1 && beam_size == 1) {
    return refuse("patience", "patience needs beam search", "set beam_size above 1");
  }
  if (options.length_penalty && (!is_number(*options.length_penalty) ||
                                 *options.length_penalty < 0 || *options.length_penalty > 1)) {
    return refuse("length_penalty", "the length penalty (alpha) must be 0 to 1");
  }
  if (options.n_best < 1) return refuse("n_best", "n_best must be 1 or more");
  return options.beam_size ? check_n_best(options) : Status();
}

Status check_thresholds(const TranscribeOptions& options) {
  const auto finite = [](const std::optional<double>& value) {
    return !value || is_number(*value);
  };
  if (!finite(options.compression_ratio_threshold)) {
    return refuse("compression_ratio_threshold", "the threshold is not a number");
  }
  if (!finite(options.logprob_threshold)) {
    return refuse("logprob_threshold", "the threshold is not a number");
  }
  if (!finite(options.no_speech_threshold)) {
    return refuse("no_speech_threshold", "the threshold is not a number");
  }
  if (!finite(options.silence_dbfs) || (options.silence_dbfs && *options.silence_dbfs > 0)) {
    return refuse("silence_dbfs", "the level must be 0 dBFS or less");
  }
  if (!options.hallucination_silence_threshold) return {};
  if (!is_number(*options.hallucination_silence_threshold) ||
      *options.hallucination_silence_threshold < 0) {
    return refuse("hallucination_silence_threshold", "the threshold must be 0 s or more");
  }
  if (!options.word_timestamps) {
    return refuse("hallucination_silence_threshold", "it needs the times of the words",
                  "set word_timestamps");
  }
  return {};
}

Status check_text(const TranscribeOptions& options) {
  if (std::any_of(options.suppress_tokens.begin(), options.suppress_tokens.end(),
                  [](auto id) { return id < -1; })) {
    return refuse("suppress_tokens", "token ids are 0 or more; -1 is the default set");
  }
  if (options.max_new_tokens < 0) return refuse("max_new_tokens", "it must be 0 (the limit) or more");
  if (!is_number(options.max_initial_timestamp) || options.max_initial_timestamp < 0 ||
      options.max_initial_timestamp > 30) {
    return refuse("max_initial_timestamp", "it must be 0 (no limit) to 30 s");
  }
  if (options.carry_initial_prompt && options.initial_prompt.empty()) {
    return refuse("carry_initial_prompt", "there is no initial prompt to carry",
                  "give initial_prompt");
  }
  return {};
}

Status check_tokens(const TranscribeOptions& options, const models::AedModel& model) {
  const int vocabulary = model.tokenizer().size();
  for (const auto id : options.suppress_tokens) {
    if (id >= vocabulary) {
      return refuse("suppress_tokens", "there is no token " + std::to_string(id),
                    "ids are below " + std::to_string(vocabulary) + "; -1 is the default set");
    }
  }
  if (options.max_new_tokens > model.context_size() / 2) {
    return refuse("max_new_tokens",
                  "it must be 0 (the limit) to " + std::to_string(model.context_size() / 2));
  }
  const auto prefix = model.tokenizer().encode(" " + options.prefix);
  if (static_cast<int>(prefix.size()) > model.context_size() / 4) {
    return refuse("prefix", "the prefix has " + std::to_string(prefix.size()) + " tokens",
                  "at most " + std::to_string(model.context_size() / 4) + " fit");
  }
  return {};
}

Status check_windows(const TranscribeOptions& options) {
  double previous = -1;
  for (const double seconds : options.clip_timestamps) {
    if (!is_number(seconds) || seconds < 0 || seconds > 1e7 || seconds < previous) {
      return refuse("clip_timestamps", "times must be 0 s or more and not fall",
                    "give start, end, start, end, … in order");
    }
    previous = seconds;
  }
  if (options.single_window && !options.clip_timestamps.empty()) {
    return refuse("single_window", "a single window has no clips",
                  "leave clip_timestamps or single_window out");
  }
  if (options.single_window && options.vad.enabled) {
    return refuse("single_window", "voice activity detection cuts the recording into pieces",
                  "leave vad or single_window out");
  }
  if (options.vad.enabled && !options.clip_timestamps.empty()) {
    return refuse("vad", "clips and voice activity detection both choose what is decoded",
                  "leave clip_timestamps or vad out");
  }
  return {};
}

Status check_word_times(const TranscribeOptions& options, const models::AedModel& model) {
  if (!options.word_timestamps || !model.tokens().alignment_heads.empty()) return {};
  return refuse("word_timestamps", "the checkpoint names no alignment heads",
                "use a checkpoint whose generation_config.json has them");
}

// Also when it is off: a threshold that can not be meant is a mistake.
Status check_vad(const VadOptions& vad) {
  if (!is_number(vad.threshold) || vad.threshold <= 0 || vad.threshold >= 1) {
    return refuse("vad.threshold", "the threshold must lie between 0 and 1");
  }
  for (const double value :
       {vad.min_speech_ms, vad.max_speech_s, vad.min_silence_ms, vad.speech_pad_ms}) {
    if (!is_number(value) || value < 0 || value > 1e7) {
      return refuse("vad", "durations must be 0 or more");
    }
  }
  return {};
}

}  // namespace

Status check_options(const TranscribeOptions& options) {
  TRY(check_ctc(options.ctc));
  TRY(check_task(options));
  TRY(check_search(options));
  TRY(check_thresholds(options));
  TRY(check_text(options));
  TRY(check_windows(options));
  return check_vad(options.vad);
}

Status validate_options(const TranscribeOptions& options, const models::AedModel& model) {
  TRY(check_options(options));
  TRY(check_n_best(options));
  TRY(check_ctc_untouched(options.ctc));
  TRY(check_language(options, model));
  TRY(check_tokens(options, model));
  return check_word_times(options, model);
}

}  // namespace oasr::engine
