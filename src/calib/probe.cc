#include "calib/probe.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "audio/audio_source.h"
#include "base/check.h"
#include "decode/ctc_greedy.h"
#include "decode/scores.h"
#include "decode/search.h"
#include "engine/fault_error.h"
#include "engine/language.h"
#include "engine/plan.h"
#include "engine/transcriber.h"
#include "engine/window_source.h"
#include "features/fbank.h"

namespace oasr::calib {
namespace {

using Prepared = Probe::Utterance;

constexpr int kLongestSeconds = 30;
constexpr int kMostTokens = 64;

Unexpected too_short(std::size_t index) {
  return unexpected(ErrorCode::invalid_argument, "is too short to hear anything in it",
                    "recording " + std::to_string(index + 1));
}

template <class State>
Status check_faults(State& state) {
  const auto fault = state.take_fault();
  if (fault) return unexpected(engine::fault_error(*fault));
  return {};
}

Result<Prepared> prepare(const models::AedModel& model, models::AedState& state, std::vector<float> samples,
                         std::size_t index) {
  const auto audio = TRY(audio_from_samples(std::move(samples), engine::sample_rate_of(model)));
  const auto source = TRY(engine::open_clip_window(*audio, model.n_mels()));
  const int frames = TRY(source->load(0));
  if (frames == 0) return too_short(index);
  Prepared utterance;
  utterance.features.resize(static_cast<std::size_t>(model.n_mels()) *
                            static_cast<std::size_t>(model.window_frames()));
  source->mel(frames, utterance.features);

  const models::WindowId window = state.encode(utterance.features);
  TranscribeOptions greedy;
  greedy.temperatures = {0};
  greedy.max_new_tokens = kMostTokens;
  const engine::Plan plan = TRY(engine::make_plan(greedy, model));
  const std::string language =
      plan.language ? *plan.language : engine::detect_language(state, window, model).code;
  utterance.prompt = plan.start_sequence(language);
  const decode::RowId row = state.open_row(window);
  const auto search = decode::make_search({.prompt = utterance.prompt,
                                           .probe_index = {},
                                           .eot = model.tokens().eot,
                                           .timestamp_begin = model.tokens().timestamp_begin},
                                          plan.search(0), plan.rules, {&row, 1});
  decode::Stepper().run(state, *search);
  utterance.tokens = search->results().front().tokens;
  state.close_row(row);
  state.release(window);
  return utterance;
}

Result<UtteranceOutputs> outputs_of(const models::AedModel&, models::AedState& state, ExecContext context,
                                    const Prepared& utterance) {
  std::vector<TokenId> all = utterance.prompt;
  all.insert(all.end(), utterance.tokens.begin(), utterance.tokens.end());
  const auto width = static_cast<std::size_t>(state.vocabulary_size());
  UtteranceOutputs outputs;
  outputs.log_probs.resize(all.size() * width);
  const models::WindowId window = state.encode(utterance.features);
  (void)state.alignment(window, all, outputs.log_probs);
  state.release(window);
  TRY(check_faults(state));
  // What follows the last token of the prompt is the first row that is compared.
  outputs.log_probs.erase(
      outputs.log_probs.begin(),
      outputs.log_probs.begin() + static_cast<std::ptrdiff_t>((utterance.prompt.size() - 1) * width));
  outputs.rows = static_cast<std::int64_t>(utterance.tokens.size()) + 1;
  context.pool->parallel_for(outputs.rows, [&](std::int64_t i, int) {
    const auto row = std::span(outputs.log_probs).subspan(static_cast<std::size_t>(i) * width, width);
    const float norm = decode::log_sum_exp(row);
    for (float& value : row) value -= norm;
  });
  return outputs;
}

// The whole utterance through the encoder and the CTC head; it stays open. Of each frame the likeliest token is known
// afterwards, or (`all`) the log-probability of every token.
Result<models::UtteranceId> encode(models::CtcState& state, const std::vector<float>& features, bool all) {
  const models::UtteranceId id = state.open({}, true);
  state.accept(id, features);
  state.finish(id);
  all ? state.step({&id, 1}) : state.step({&id, 1}, 1);
  TRY(check_faults(state));
  return id;
}

Result<Prepared> prepare(const models::CtcModel& model, models::CtcState& state, std::vector<float> samples,
                         std::size_t index) {
  Prepared utterance;
  round_to_16_bits(samples);
  utterance.features = TRY(fbank(samples, model.front_end()));
  const auto frames = static_cast<int>(utterance.features.size()) / model.front_end().num_mel_bins;
  if (frames <= model.right_context()) return too_short(index);
  const models::UtteranceId id = TRY(encode(state, utterance.features, false));
  decode::CtcGreedy greedy;
  greedy.accept(state.likeliest(id));
  for (const decode::CtcToken& token : greedy.result().tokens) utterance.tokens.push_back(token.id);
  if (utterance.tokens.size() > kMostTokens) utterance.tokens.resize(kMostTokens);
  state.close(id);
  return utterance;
}

Result<UtteranceOutputs> outputs_of(const models::CtcModel& model, models::CtcState& state, ExecContext,
                                    const Prepared& utterance) {
  const models::UtteranceId id = TRY(encode(state, utterance.features, true));
  const auto log_probs = state.scores(id).values;
  UtteranceOutputs outputs;
  outputs.rows = state.frames(id);
  outputs.log_probs.assign(log_probs.begin(), log_probs.end());
  if (model.has_decoder()) {
    const std::size_t count = utterance.tokens.size() + 1;
    outputs.token_scores.resize(model.has_right_to_left() ? 2 * count : count);
    const auto scores = std::span(outputs.token_scores);
    const decode::SequenceScorer::Item item{.utterance = id,
                                            .tokens = utterance.tokens,
                                            .left = scores.first(count),
                                            .right = scores.subspan(count)};
    state.score({&item, 1});
  }
  state.close(id);
  TRY(check_faults(state));
  return outputs;
}

// What a model must have in common with the reference, so that its outputs can be compared.
std::vector<int> interface_of(const models::AedModel& model, const models::AedState& state) {
  return {model.n_mels(), model.window_frames(), state.vocabulary_size(), model.context_size()};
}
std::vector<int> interface_of(const models::CtcModel& model, const models::CtcState&) {
  return {model.front_end().num_mel_bins, model.vocabulary(),       model.subsampling_rate(),
          model.right_context(),          int{model.has_decoder()}, int{model.has_right_to_left()}};
}

// Calls `body` with the model as its family and a fresh state for one utterance.
template <class Body>
Status with_state(const models::SpeechModel& model, ExecContext context, const Body& body) {
  if (const auto* aed = dynamic_cast<const models::AedModel*>(&model)) {
    const auto state = TRY(aed->new_state(context, 1, 1));
    return body(*aed, *state);
  }
  if (const auto* ctc = dynamic_cast<const models::CtcModel*>(&model)) {
    const auto state = TRY(ctc->new_state(context));
    return body(*ctc, *state);
  }
  return unexpected(ErrorCode::unsupported,
                    "there is no probe for the family of " + model.info().architecture);
}

// Calls `body` for every pair of log-probabilities, and of token scores.
template <class Body>
void each_pair(const Outputs& a, const Outputs& b, std::vector<float> UtteranceOutputs::*values,
               const Body& body) {
  CHECK(a.utterances.size() == b.utterances.size(), "outputs of one probe");
  for (std::size_t u = 0; u < a.utterances.size(); ++u) {
    const auto &left = a.utterances[u].*values, &right = b.utterances[u].*values;
    CHECK(left.size() == right.size(), "outputs of one probe");
    for (std::size_t i = 0; i < left.size(); ++i) body(left[i], right[i]);
  }
}

}  // namespace

Result<Probe> Probe::make(const models::SpeechModel& model, ExecContext context,
                          std::span<const std::vector<float>> recordings) {
  if (recordings.empty()) return unexpected(ErrorCode::invalid_argument, "a probe needs a recording");
  Probe probe;
  probe.context_ = context;
  const auto longest = static_cast<std::size_t>(kLongestSeconds * engine::sample_rate_of(model));
  TRY(with_state(model, context, [&](const auto& family, auto& state) -> Status {
    probe.interface_ = interface_of(family, state);
    for (std::size_t i = 0; i < recordings.size(); ++i) {
      const auto samples = std::span(recordings[i]).first(std::min(longest, recordings[i].size()));
      auto utterance = TRY(prepare(family, state, {samples.begin(), samples.end()}, i));
      probe.utterances_.push_back(std::move(utterance));
    }
    return check_faults(state);
  }));
  probe.reference_ = TRY(probe.run(model));
  return probe;
}

Result<Outputs> Probe::run(const models::SpeechModel& model, RunObserver* observer) const {
  Outputs outputs;
  ExecContext context = context_;
  context.observer = observer;
  TRY(with_state(model, context, [&](const auto& family, auto& state) -> Status {
    if (interface_of(family, state) != interface_) {
      return unexpected(ErrorCode::invalid_argument,
                        "the model is not a version of the one that the probe was made of");
    }
    for (const Prepared& utterance : utterances_) {
      auto said = TRY(outputs_of(family, state, context, utterance));
      outputs.utterances.push_back(std::move(said));
    }
    return {};
  }));
  return outputs;
}

double divergence(const Outputs& reference, const Outputs& other) {
  double nats = 0, scores = 0;
  std::int64_t rows = 0, tokens = 0;
  for (const UtteranceOutputs& utterance : reference.utterances) rows += utterance.rows;
  // p (ln p − ln q) summed over a row, written as p ln(p / q) − p + q, which adds nothing to the sum and
  // keeps every term from being negative by rounding.
  each_pair(reference, other, &UtteranceOutputs::log_probs,
            [&](double p, double q) { nats += std::exp(p) * (p - q + std::expm1(q - p)); });
  each_pair(reference, other, &UtteranceOutputs::token_scores, [&](double a, double b) {
    scores += std::abs(a - b);
    ++tokens;
  });
  return nats / static_cast<double>(rows) + (tokens > 0 ? scores / static_cast<double>(tokens) : 0.0);
}

double greatest_difference(const Outputs& reference, const Outputs& other) {
  double greatest = 0;
  const auto body = [&](double a, double b) { greatest = std::max(greatest, std::abs(a - b)); };
  each_pair(reference, other, &UtteranceOutputs::log_probs, body);
  each_pair(reference, other, &UtteranceOutputs::token_scores, body);
  return greatest;
}

bool same_bits(const Outputs& reference, const Outputs& other) {
  bool same = true;
  const auto body = [&](float a, float b) {
    same = same && std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
  };
  each_pair(reference, other, &UtteranceOutputs::log_probs, body);
  each_pair(reference, other, &UtteranceOutputs::token_scores, body);
  return same;
}

}  // namespace oasr::calib
