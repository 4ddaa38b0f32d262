#include "engine/ctc_recording.h"

#include <fmt/format.h>

#include "features/fbank.h"

namespace oasr::engine {

namespace {

// On the threads of a pool; in a loop of this pool on the thread that asks.
ForEach on(ThreadPool& pool) {
  return [&pool](std::size_t items, const std::function<void(std::size_t)>& body) {
    pool.parallel_for(static_cast<std::int64_t>(items),
                      [&](std::int64_t i, int) { body(static_cast<std::size_t>(i)); });
  };
}

}  // namespace

CtcRecording::CtcRecording(const CtcPlan& plan, AudioSource& audio, const Callbacks& callbacks, MelDevice* front_end,
                           ThreadPool& pool)
    : plan_(plan),
      audio_(audio),
      callbacks_(callbacks),
      front_end_(front_end),
      utterances_(audio, plan.model->front_end().sample_rate, plan.vad, on(pool)) {}

Result<std::optional<CtcUtterance>> CtcRecording::next() {
  const FbankOptions& front_end = plan_.model->front_end();
  const double rate = front_end.sample_rate;
  std::optional<CtcUtterance> next;
  while (std::optional<Utterance> utterance = TRY(utterances_.next())) {
    round_to_16_bits(utterance->samples);
    std::vector<float> features = TRY(fbank(utterance->samples, front_end, front_end_));
    // Too short for one encoder frame: nothing can be heard in it.
    const auto frames = static_cast<int>(features.size()) / front_end.num_mel_bins;
    if (frames <= plan_.model->right_context()) continue;
    next = CtcUtterance{.features = std::move(features),
                        .offset = static_cast<double>(utterance->begin) / rate,
                        .duration = static_cast<double>(utterance->samples.size()) / rate,
                        .recording_seconds = audio_.info().declared_seconds.value_or(0)};
    break;
  }
  return next;
}

void CtcRecording::take(const CtcUtterance& utterance, const std::vector<CtcResult>& results) {
  const double offset = utterance.offset, duration = utterance.duration;
  Segment segment = make_segment(plan_, results.front(), offset, duration);
  ++taken_;
  if (plan_.n_best > 1) {
    transcript_.alternatives.clear();
    for (std::size_t i = 0; i < results.size() && i < static_cast<std::size_t>(plan_.n_best); ++i) {
      Segment other = make_segment(plan_, results[i], offset, duration);
      transcript_.alternatives.push_back({.text = std::move(other.text),
                                          .tokens = std::move(other.tokens),
                                          .avg_logprob = other.avg_logprob,
                                          .score = results[i].score});
    }
  }
  if (!segment.text.empty()) {
    segment.id = static_cast<int>(transcript_.segments.size());
    segment.seek = static_cast<int>(offset * 100 + 0.5);
    if (!transcript_.text.empty()) transcript_.text += " ";
    transcript_.text += segment.text;
    if (callbacks_.segment) callbacks_.segment(segment);
    transcript_.segments.push_back(std::move(segment));
  }
  if (callbacks_.progress) callbacks_.progress(offset + duration, utterance.recording_seconds);
}

Result<Transcript> CtcRecording::take_result() {
  if (error_) return unexpected(std::move(*error_));
  finish();
  return std::move(transcript_);
}

void CtcRecording::finish() {
  transcript_.duration = static_cast<double>(utterances_.samples()) / plan_.model->front_end().sample_rate;
  transcript_.truncated = audio_.truncated().has_value();
  const auto warn = [&](const char* kind, std::string message) {
    transcript_.warnings.push_back({kind, std::move(message)});
  };
  if (audio_.truncated()) warn("truncated_audio", *audio_.truncated());
  for (const std::string& warning : audio_.warnings()) warn("audio", warning);
  if (utterances_.was_cut() && !plan_.vad.enabled) {
    warn("cut_at_pauses", fmt::format("recordings over {:.0f} s are cut at pauses, into at most {:.0f} s each: {} pieces "
                                      "of speech; what voice activity detection takes for silence is not heard",
                                      kLongestWhole, kLongestPiece, taken_));
  }
  if (plan_.n_best > 1 && taken_ > 1) {
    transcript_.alternatives.clear();
    warn("no_alternatives", "n_best was asked for, and there is more than one utterance");
  }
  if (transcript_.text.empty()) warn("empty_result", "the recording gave no text");
}

}  // namespace oasr::engine
