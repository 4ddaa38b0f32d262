#include "engine/ctc_plan.h"

#include <algorithm>
#include <cmath>

#include "decode/context_phrases.h"
#include "engine/validate.h"

namespace oasr::engine {
namespace {

constexpr EnumName<CtcMode> kModes[] = {
    {CtcMode::ctc_greedy_search, "ctc_greedy_search"},
    {CtcMode::ctc_prefix_beam_search, "ctc_prefix_beam_search"},
    {CtcMode::attention_rescoring, "attention_rescoring"},
    {CtcMode::attention, "attention"},
    {CtcMode::joint, "joint"},
};

constexpr int kWidestBeam = 64;

std::string mode_names() {
  std::string names;
  for (const auto& row : kModes) names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

bool in_unit_range(const std::optional<double>& value, double most) {
  return !value || (std::isfinite(*value) && *value >= 0 && *value <= most);
}

// An option of the attention encoder-decoder family, and whether it is set to what is not its default.
struct ForeignOption {
  const char* name;
  bool (*is_set)(const TranscribeOptions& given, const TranscribeOptions& plain);
};
#define OASR_FOREIGN(field) \
  ForeignOption { #field, [](const TranscribeOptions& a, const TranscribeOptions& b) { return a.field != b.field; } }
constexpr ForeignOption kForeign[] = {
    OASR_FOREIGN(language), OASR_FOREIGN(task), OASR_FOREIGN(best_of), OASR_FOREIGN(patience),
    OASR_FOREIGN(length_penalty), OASR_FOREIGN(temperatures), OASR_FOREIGN(seed),
    OASR_FOREIGN(compression_ratio_threshold), OASR_FOREIGN(logprob_threshold), OASR_FOREIGN(no_speech_threshold),
    OASR_FOREIGN(condition_on_previous_text), OASR_FOREIGN(initial_prompt), OASR_FOREIGN(carry_initial_prompt),
    OASR_FOREIGN(prefix), OASR_FOREIGN(suppress_blank), OASR_FOREIGN(suppress_tokens), OASR_FOREIGN(timestamps),
    OASR_FOREIGN(max_initial_timestamp), OASR_FOREIGN(prepend_punctuations), OASR_FOREIGN(append_punctuations),
    OASR_FOREIGN(hallucination_silence_threshold), OASR_FOREIGN(clip_timestamps), OASR_FOREIGN(max_new_tokens),
    OASR_FOREIGN(silence_dbfs), OASR_FOREIGN(single_window),
};
#undef OASR_FOREIGN

Status check_foreign(const TranscribeOptions& options, const models::CtcModel& model) {
  const TranscribeOptions plain;
  for (const ForeignOption& option : kForeign) {
    if (!option.is_set(options, plain)) continue;
    return refuse(option.name, "is an option of Whisper's family; this model is a " + model.info().architecture +
                                   " with a CTC head", "leave it out");
  }
  return {};
}

Status check_model(const CtcPlan& plan, const CtcOptions& options) {
  const models::CtcModel& model = *plan.model;
  const bool decodes = plan.mode == CtcMode::attention_rescoring || plan.mode == CtcMode::attention ||
                       plan.mode == CtcMode::joint;
  if (decodes && !model.has_decoder()) {
    return refuse("decode", std::string(enum_name(ctc_mode_names(), plan.mode)) +
                                " needs an attention decoder, and the model has none",
                  "use ctc_prefix_beam_search or ctc_greedy_search");
  }
  if (options.reverse_weight.value_or(0) > 0 && !model.has_right_to_left()) {
    return refuse("reverse_weight", "the model has no right-to-left decoder", "leave it out");
  }
  if (options.reverse_weight && plan.mode != CtcMode::attention_rescoring) {
    return refuse("reverse_weight", "belongs to attention_rescoring");
  }
  if (options.ctc_weight && plan.mode != CtcMode::attention_rescoring && plan.mode != CtcMode::joint) {
    return refuse("ctc_weight", "belongs to attention_rescoring and joint");
  }
  if (!options.hotwords.empty() && plan.mode != CtcMode::attention_rescoring &&
      plan.mode != CtcMode::ctc_prefix_beam_search) {
    return refuse("hotwords", "belong to ctc_prefix_beam_search and attention_rescoring");
  }
  if (plan.mask.chunk_size > 0 && !model.streaming_refusal().empty()) {
    return refuse("chunk_size", "the model can not be cut into chunks: " + model.streaming_refusal(),
                  "leave it out: the model sees whole utterances");
  }
  return {};
}

Status check_beam(const TranscribeOptions& options, const CtcPlan& plan) {
  if (plan.mode == CtcMode::ctc_greedy_search) {
    if (options.beam_size.value_or(1) != 1) return refuse("beam_size", "ctc_greedy_search has no beam");
    if (options.n_best != 1) return refuse("n_best", "ctc_greedy_search gives one text", "use ctc_prefix_beam_search");
    return {};
  }
  if (plan.beam_size < 1 || plan.beam_size > kWidestBeam) return refuse("beam_size", "must be 1 to 64");
  if (options.n_best < 1 || options.n_best > plan.beam_size) {
    return refuse("n_best", "must be 1 to the beam size, " + std::to_string(plan.beam_size));
  }
  return {};
}

Result<std::shared_ptr<const decode::ContextGraph>> make_context(const CtcOptions& options,
                                                                 const models::CtcModel& model) {
  std::shared_ptr<const decode::ContextGraph> graph;
  if (options.hotwords.empty()) return graph;
  std::vector<decode::TextPhrase> phrases;
  for (const Hotword& word : options.hotwords) {
    if (to_valid_utf8(word.text) != word.text) return refuse("hotwords", "a phrase is not UTF-8");
    phrases.push_back({word.text, word.weight});
  }
  auto encoded = decode::encode_phrases(model.tokenizer(), phrases);
  if (!encoded) {
    Error error = std::move(encoded).error();
    error.where = "hotwords";
    return unexpected(std::move(error));
  }
  return decode::ContextGraph::make(*encoded, model.vocabulary(), model.tokens().blank);
}

}  // namespace

std::span<const EnumName<CtcMode>> ctc_mode_names() { return kModes; }

decode::CtcBeamOptions CtcPlan::prefix_beam() const {
  return {.vocabulary = model->vocabulary(),
          .blank = model->tokens().blank,
          .first_beam = beam_size,
          .second_beam = beam_size,
          .context = context};
}

int CtcPlan::tokens_of_frame() const {
  if (mode == CtcMode::joint) return 0;
  const bool has_beam = mode == CtcMode::ctc_prefix_beam_search || mode == CtcMode::attention_rescoring;
  return has_beam ? std::min(beam_size, model->vocabulary()) : 1;
}

Status check_ctc(const CtcOptions& options) {
  if (!options.decode.empty() && !parse_enum(ctc_mode_names(), options.decode)) {
    return refuse("decode", "'" + options.decode + "' is no decode mode", "use one of " + mode_names());
  }
  if (options.chunk_size < 0 || options.chunk_size > 10'000) {
    return refuse("chunk_size", "must be 0 (the whole utterance) to 10000 encoder frames");
  }
  if (options.num_left_chunks < -1) return refuse("num_left_chunks", "must be -1 (all) or more");
  if (options.num_left_chunks >= 0 && options.chunk_size == 0) {
    return refuse("num_left_chunks", "needs a chunk size", "set chunk_size");
  }
  if (!in_unit_range(options.ctc_weight, 1000)) return refuse("ctc_weight", "must be 0 or more");
  if (!in_unit_range(options.reverse_weight, 1)) return refuse("reverse_weight", "must be 0 to 1");
  for (const Hotword& word : options.hotwords) {
    if (word.text.empty()) return refuse("hotwords", "a phrase is empty");
    if (!std::isfinite(word.weight)) return refuse("hotwords", "the weight of '" + word.text + "' is not a number");
  }
  return {};
}

Status check_ctc_untouched(const CtcOptions& options) {
  const char* set = nullptr;
  if (!options.decode.empty()) set = "decode";
  if (options.chunk_size != 0) set = "chunk_size";
  if (options.num_left_chunks != -1) set = "num_left_chunks";
  if (options.ctc_weight) set = "ctc_weight";
  if (options.reverse_weight) set = "reverse_weight";
  if (!options.hotwords.empty()) set = "hotwords";
  if (set == nullptr) return {};
  return refuse(set, "is an option of models with a CTC head, and this model has none", "leave it out");
}

Result<CtcPlan> make_ctc_plan(const TranscribeOptions& options, const models::CtcModel& model) {
  TRY(check_options(options));
  TRY(check_foreign(options, model));
  CtcPlan plan;
  plan.model = &model;
  plan.mode = model.has_decoder() ? CtcMode::attention_rescoring : CtcMode::ctc_prefix_beam_search;
  if (!options.ctc.decode.empty()) plan.mode = *parse_enum(ctc_mode_names(), options.ctc.decode);
  plan.mask = {.chunk_size = options.ctc.chunk_size, .num_left_chunks = options.ctc.num_left_chunks};
  plan.beam_size = options.beam_size.value_or(10);
  plan.n_best = options.n_best;
  plan.ctc_weight = options.ctc.ctc_weight.value_or(plan.mode == CtcMode::joint ? 0.3 : 0.5);
  plan.reverse_weight = options.ctc.reverse_weight.value_or(model.reverse_weight());
  plan.word_timestamps = options.word_timestamps;
  plan.vad = options.vad;
  TRY(check_model(plan, options.ctc));
  TRY(check_beam(options, plan));
  plan.context = TRY(make_context(options.ctc, model));
  return plan;
}

}  // namespace oasr::engine
