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

Status CtcRecording::read(std::vector<float>& features) {
  const double rate = plan_.model->front_end().sample_rate;
  while (features.empty()) {
    std::optional<Utterance> utterance = TRY(utterances_.next());
    if (!utterance) return {};
    offset_ = static_cast<double>(utterance->begin) / rate;
    duration_ = static_cast<double>(utterance->samples.size()) / rate;
    round_to_16_bits(utterance->samples);
    features = TRY(fbank(utterance->samples, plan_.model->front_end(), front_end_));
    // Too short for one encoder frame: nothing can be heard in it.
    const auto frames = static_cast<int>(features.size()) / plan_.model->front_end().num_mel_bins;
    if (frames <= plan_.model->right_context()) features.clear();
  }
  return {};
}

bool CtcRecording::next(std::vector<float>& features) {
  features.clear();
  if (result_) return false;
  if (auto read_well = read(features); !read_well) {
    fail(std::move(read_well).error());
    return false;
  }
  if (features.empty()) finish();
  return !features.empty();
}

void CtcRecording::take(const std::vector<CtcResult>& results) {
  Segment segment = make_segment(plan_, results.front(), offset_, duration_);
  ++taken_;
  if (plan_.n_best > 1) {
    transcript_.alternatives.clear();
    for (std::size_t i = 0; i < results.size() && i < static_cast<std::size_t>(plan_.n_best); ++i) {
      Segment other = make_segment(plan_, results[i], offset_, duration_);
      transcript_.alternatives.push_back({.text = std::move(other.text),
                                          .tokens = std::move(other.tokens),
                                          .avg_logprob = other.avg_logprob,
                                          .score = results[i].score});
    }
  }
  if (!segment.text.empty()) {
    segment.id = static_cast<int>(transcript_.segments.size());
    segment.seek = static_cast<int>(offset_ * 100 + 0.5);
    if (!transcript_.text.empty()) transcript_.text += " ";
    transcript_.text += segment.text;
    if (callbacks_.segment) callbacks_.segment(segment);
    transcript_.segments.push_back(std::move(segment));
  }
  if (callbacks_.progress) callbacks_.progress(offset_ + duration_, audio_.info().declared_seconds.value_or(0));
}

void CtcRecording::fail(Error error) { result_ = unexpected(std::move(error)); }

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
  result_ = std::move(transcript_);
}

}  // namespace oasr::engine
