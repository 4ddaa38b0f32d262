#include "engine/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "engine/hallucination.h"
#include "engine/language.h"
#include "engine/level_meter.h"
#include "engine/word_times.h"
#include "features/log_mel.h"
#include "features/silero_vad.h"
#include "text/compression.h"
#include "text/utf8.h"

namespace oasr::engine {

namespace {

// Two first-order high-passes at 150 Hz: a constant offset and the hum of the mains (-20 dB) do not cover
// a voice for voice activity detection.
std::vector<float> without_hum(std::span<const float> samples) {
  constexpr float kPole = 0.94f;  // exp(-2 pi 150 / 16000)
  std::vector<float> filtered(samples.begin(), samples.end());
  for (int pass = 0; pass < 2; ++pass) {
    float before = filtered.empty() ? 0 : filtered.front(), out = 0;
    for (float& sample : filtered) {
      out = sample - before + kPole * out;
      before = std::exchange(sample, out);
    }
  }
  return filtered;
}

}  // namespace

Recording::Recording(const Plan& plan, AudioSource& audio, const Callbacks& callbacks, models::AedState& state,
                     MelDevice* front_end)
    : plan_(plan),
      audio_(audio),
      callbacks_(callbacks),
      state_(state),
      front_end_(front_end),
      context_(plan),
      language_(plan.language),
      mel_(static_cast<std::size_t>(plan.model->n_mels() * plan.model->window_frames())) {}

void Recording::attempt(Status (Recording::*step)()) {
  auto status = (this->*step)();
  if (!status) fail(std::move(status).error());
}

void Recording::collect() {
  if (!over() && search_ && search_->done()) attempt(&Recording::finish_attempt);
}

void Recording::prepare() {
  if (!over() && !search_) attempt(&Recording::go_to_window);
}

std::optional<models::MelWindow> Recording::window_to_encode() const {
  if (over() || search_ || !loaded_ || language_at_start_) return std::nullopt;
  return models::MelWindow{.mel = mel_, .audio_frames = frames_};
}

void Recording::start() {
  if (!over() && !search_) attempt(&Recording::start_window);
}

void Recording::fail(Error error) {
  end_attempt();
  if (window_) state_.release(*std::exchange(window_, std::nullopt));
  result_ = unexpected(std::move(error));
}

Status Recording::go_to_window() {
  if (!windows_) TRY(open());
  if (language_at_start_) return {};  // takes the encoder first
  while (!loaded_ && !over()) TRY(load_window());
  return {};
}

Status Recording::open() {
  const int n_mels = plan_.model->n_mels();
  if (plan_.options.vad.enabled) {
    speech_ = std::make_unique<SpeechSource>(audio_, plan_.options.vad);
  }
  AudioSource& source = speech_ ? *speech_ : audio_;
  windows_ = plan_.options.single_window
                 ? TRY(open_clip_window(source, n_mels, front_end_))
                 : TRY(open_mel_windows(source, n_mels, callbacks_.cancelled, front_end_));
  // The reference detects the language at the start of the recording, whatever the clips are.
  language_at_start_ = !language_ && plan_.clips.front().first > 0;
  return {};
}

Status Recording::find_language_at_start() {
  language_at_start_ = false;
  const int frames = TRY(windows_->load(0));
  if (frames == 0 || is_empty(frames)) return {};
  TRY(compute_features(frames, true));
  TRY(encode(frames));
  TRY(find_language(kWhisperFrames));
  state_.release(*std::exchange(window_, std::nullopt));
  return {};
}

// Loads the next window, unless it is empty or the recording ends before it.
Status Recording::load_window() {
  if (clip_ == plan_.clips.size()) {
    finish();
    return {};
  }
  const auto [clip_start, clip_end] = plan_.clips[clip_];
  seek_ = std::max(seek_, clip_start);
  if (clip_end >= 0 && seek_ >= clip_end) {
    ++clip_;
    return {};
  }
  int frames = TRY(windows_->load(seek_));
  if (clip_end >= 0) frames = static_cast<int>(std::min<std::int64_t>(frames, clip_end - seek_));
  if (frames == 0) {
    finish();
    return {};
  }
  if (is_empty(frames)) {
    notices_.silent_window(real_time(seconds_at(seek_)), seconds_at(frames));
    go_to(seek_ + frames);
    return {};
  }
  constexpr double kFarBeyond = 16;  // mean square of 4 times full scale
  const auto levels = windows_->levels(frames);
  const double loudest = levels.empty() ? 0 : *std::ranges::max_element(levels);
  if (loudest > kFarBeyond) notices_.overloaded(real_time(seconds_at(seek_)), std::sqrt(loudest));
  TRY(compute_features(frames, false));
  frames_ = frames;
  loaded_ = true;
  return {};
}

// Nothing to decode in the loaded window: below the floor, or a steady sound in which nobody speaks.
bool Recording::is_empty(int frames) const {
  const auto& floor = plan_.options.silence_dbfs;
  if (!floor) return false;
  const auto levels = windows_->levels(frames);
  return is_quiet(levels, *floor) || (is_steady(levels) && !holds_speech(without_hum(windows_->audio(frames))));
}

Status Recording::compute_features(int frames, bool with_silence) {
  with_silence ? windows_->mel_with_silence(frames, mel_) : windows_->mel(frames, mel_);
  if (!std::ranges::all_of(mel_, [](float v) { return std::isfinite(v); })) {
    return unexpected(ErrorCode::bad_audio,
                      fmt::format("the samples after {:.2f} s are too large to compute with",
                                  real_time(seconds_at(seek_))),
                      {}, "float audio lies in [-1, 1]: scale it");
  }
  return {};
}

Status Recording::encode(int frames) {
  window_ = state_.encode({.mel = mel_, .audio_frames = frames});
  return check_faults();
}

// Of what this recording alone has run.
Status Recording::check_faults() {
  if (const auto fault = state_.take_fault()) return unexpected(fault_error(*fault));
  return {};
}

Status Recording::start_window() {
  if (!windows_) TRY(open());
  if (language_at_start_) TRY(find_language_at_start());
  TRY(go_to_window());
  if (over()) return {};
  loaded_ = false;
  if (!window_) TRY(encode(frames_));
  if (!language_) TRY(find_language(frames_));
  ++decoded_windows_;
  start_attempt(0);
  return {};
}

// Detects in the encoded window. A short window is padded differently by the reference for this;
// another encoder pass is spent on that only where the language is in doubt.
Status Recording::find_language(int frames) {
  constexpr double kDoubt = 0.5;
  auto detected = detect_language(state_, *window_, *plan_.model);
  if (detected.probability < kDoubt && frames < kWhisperFrames && !plan_.options.single_window) {
    state_.release(*window_);
    TRY(compute_features(frames, true));
    TRY(encode(frames));
    detected = detect_language(state_, *window_, *plan_.model);
    state_.release(*window_);
    TRY(compute_features(frames, false));
    TRY(encode(frames));
  }
  TRY(check_faults());
  language_ = detected.code;
  transcript_.language_probability = detected.probability;
  return {};
}

void Recording::start_attempt(int attempt) {
  attempt_ = attempt;
  const models::AedTokens& ids = plan_.model->tokens();
  decode::SearchStart start;
  if (const auto earlier = context_.tokens(); !earlier.empty()) {
    start.prompt.push_back(ids.sot_prev);
    start.prompt.insert(start.prompt.end(), earlier.begin(), earlier.end());
  }
  start.probe_index = static_cast<int>(start.prompt.size());
  start.probe_token = ids.no_speech;
  const auto append = [&](const std::vector<TokenId>& tokens) {
    start.prompt.insert(start.prompt.end(), tokens.begin(), tokens.end());
  };
  append(plan_.start_sequence(*language_));
  if (!plan_.options.timestamps) start.prompt.push_back(ids.no_timestamps);
  if (decoded_windows_ == 1 && !plan_.prefix.empty()) {
    if (plan_.options.timestamps) start.forced.push_back(ids.timestamp_begin);
    start.forced.insert(start.forced.end(), plan_.prefix.begin(), plan_.prefix.end());
  }
  start.eot = ids.eot;
  start.timestamp_begin = ids.timestamp_begin;

  auto options = plan_.search(attempt);
  // The last token is chosen, but not fed.
  const int room = plan_.model->context_size() + 1 - static_cast<int>(start.prompt.size() + start.forced.size());
  options.max_new_tokens = std::min(options.max_new_tokens, room);
  options.random.window = decoded_windows_ - 1;
  for (int i = 0; i < decode::rows_needed(options); ++i) rows_.push_back(state_.open_row(*window_));
  search_ = decode::make_search(std::move(start), options, plan_.rules, rows_);
}

void Recording::end_attempt() {
  for (const decode::RowId row : rows_) state_.close_row(row);
  rows_.clear();
  search_.reset();
}

Recording::Attempt Recording::judge() const {
  const TranscribeOptions& options = plan_.options;
  Attempt attempt;
  attempt.hypotheses = search_->results();
  const decode::Hypothesis& best = attempt.hypotheses.front();
  DecodedWindow& decoded = attempt.decoded;
  decoded.tokens = best.tokens;
  decoded.temperature = options.temperatures[static_cast<std::size_t>(attempt_)];
  decoded.avg_logprob = best.avg_logprob;
  decoded.no_speech_prob = search_->probe_probability();
  const std::string text = to_valid_utf8(plan_.model->tokenizer().decode(decoded.tokens));
  decoded.compression_ratio = compression_ratio(strip(text));

  const auto& threshold = options.logprob_threshold;
  const bool unlikely = threshold && decoded.avg_logprob < *threshold;
  const bool likely = threshold && decoded.avg_logprob > *threshold;
  const bool no_speech =
      options.no_speech_threshold && decoded.no_speech_prob > *options.no_speech_threshold;
  const bool repetitive = options.compression_ratio_threshold &&
                          decoded.compression_ratio > *options.compression_ratio_threshold;
  attempt.failed = (repetitive || unlikely) && !(no_speech && unlikely);
  attempt.silent = no_speech && !likely;
  return attempt;
}

Status Recording::finish_attempt() {
  const Attempt attempt = judge();
  end_attempt();
  const bool last = attempt_ + 1 == static_cast<int>(plan_.options.temperatures.size());
  if (attempt.failed && !last && (attempt_ > 0 || may_hold_speech())) {
    start_attempt(attempt_ + 1);
    return {};
  }
  if (attempt.failed && !last) {
    notices_.unheard_window(real_time(seconds_at(seek_)), seconds_at(frames_));
    go_to(seek_ + frames_);
  } else {
    if (attempt.failed && !attempt.silent) {
      notices_.fallback_exhausted(real_time(seconds_at(seek_)));
    }
    TRY(accept(attempt));
  }
  if (window_) state_.release(*std::exchange(window_, std::nullopt));
  return {};
}

// Asked when a text looks wrong: in noise every temperature gives such a text, at many times the
// cost of the first.
bool Recording::may_hold_speech() const {
  return !plan_.options.silence_dbfs || holds_speech(windows_->audio(frames_));
}

Status Recording::accept(const Attempt& attempt) {
  if (attempt.silent) {
    notices_.no_speech_window(real_time(seconds_at(seek_)), seconds_at(frames_));
    go_to(seek_ + frames_);
    return {};
  }
  if (!attempt.hypotheses.front().ended) notices_.token_limit(real_time(seconds_at(seek_)));
  keep_alternatives(attempt);
  auto window =
      split_segments(attempt.decoded, seek_, frames_, *plan_.model, plan_.options.single_window);
  bool keep = true;
  if (plan_.options.word_timestamps) {
    TRY(time_words(window));
    const WindowPlace place{seek_, frames_, windows_->total_frames(), last_speech_};
    if (!plan_.options.single_window) seek_to_last_word(window, place);
    if (const auto& threshold = plan_.options.hallucination_silence_threshold) {
      keep = skip_hallucinations(window, place, *threshold);
    }
    if (const auto end = speech_end(window.segments); keep && end) last_speech_ = *end;
  }
  if (keep) emit(window.segments, attempt.decoded.temperature);
  go_to(window.seek > seek_ ? window.seek : seek_ + frames_);
  return {};
}

Status Recording::time_words(WindowSegments& window) {
  const TokenId eot = plan_.model->tokens().eot;
  std::vector<TokenId> tokens;
  for (const Segment& segment : window.segments) {
    const auto text = text_tokens(segment.tokens, eot);
    tokens.insert(tokens.end(), text.begin(), text.end());
  }
  auto words = align_words(state_, *window_, *plan_.model, plan_.start_sequence(*language_), tokens,
                           frames_, *language_);
  TRY(check_faults());
  set_words(window.segments, std::move(words), eot, seconds_at(seek_), last_speech_,
            plan_.options.prepend_punctuations, plan_.options.append_punctuations);
  return {};
}

// Hands the segments that hold text out, and remembers their tokens as the next window's prompt.
void Recording::emit(std::vector<Segment>& segments, double temperature) {
  const Tokenizer& tokenizer = plan_.model->tokenizer();
  for (Segment& segment : segments) {
    if (segment.start == segment.end || strip(segment.text).empty()) continue;
    context_.append(segment.tokens);
    text_ += tokenizer.decode(text_tokens(segment.tokens, plan_.model->tokens().eot));
    segment.id = static_cast<int>(transcript_.segments.size());
    to_real_time(segment);
    transcript_.segments.push_back(std::move(segment));
    if (callbacks_.segment) callbacks_.segment(transcript_.segments.back());
  }
  // A text that took a high temperature is no good example to go on from.
  if (!plan_.options.condition_on_previous_text || temperature > 0.5) context_.reset();
}

void Recording::keep_alternatives(const Attempt& attempt) {
  transcript_.alternatives.clear();
  if (plan_.options.n_best == 1 || decoded_windows_ > 1) return;
  for (const auto& hypothesis : attempt.hypotheses) {
    if (transcript_.alternatives.size() == static_cast<std::size_t>(plan_.options.n_best)) break;
    const auto text = text_tokens(hypothesis.tokens, plan_.model->tokens().eot);
    transcript_.alternatives.push_back({to_valid_utf8(plan_.model->tokenizer().decode(text)),
                                        hypothesis.tokens, hypothesis.avg_logprob});
  }
}

void Recording::go_to(std::int64_t seek) {
  seek_ = seek;
  report_progress();
}

void Recording::report_progress() const {
  if (!callbacks_.progress) return;
  const auto total = windows_->total_frames();
  const double done = real_time(seconds_at(total ? std::min(seek_, *total) : seek_));
  if (!total) return callbacks_.progress(done, audio_.info().declared_seconds.value_or(0));
  const double all = speech_ ? recording_seconds() : seconds_at(*total);
  callbacks_.progress(seek_ >= *total ? all : done, all);
}

double Recording::recording_seconds() const {
  const std::int64_t samples = speech_ ? speech_->recording_samples() : windows_->samples();
  return static_cast<double>(samples) / kWhisperSampleRate;
}

double Recording::real_time(double seconds) const {
  return speech_ ? speech_->times().start(seconds) : seconds;
}

void Recording::to_real_time(Segment& segment) const {
  if (!speech_) return;
  const TimeMap& times = speech_->times();
  segment.seek = static_cast<int>(times.start(seconds_at(segment.seek)) * 100 + 1e-6);
  const auto place = [&](auto& timed) {
    const TimeRange real = times.range({timed.start, timed.end});
    timed.start = real.start;
    timed.end = real.end;
  };
  place(segment);
  for (Word& word : segment.words) place(word);
}

void Recording::finish() {
  transcript_.text = to_valid_utf8(text_);
  transcript_.language = language_.value_or("");
  transcript_.duration = recording_seconds();
  transcript_.seed = plan_.options.seed;
  auto& warnings = transcript_.warnings;
  if (const auto& truncated = audio_.truncated()) {
    transcript_.truncated = true;
    warnings.push_back({"truncated_audio", *truncated});
  }
  for (const std::string& warning : audio_.warnings()) warnings.push_back({"audio", warning});
  if (!windows_->exact_maximum()) {
    warnings.push_back({"running_maximum",
                        "a stream is normalised by its loudest part so far: the text may differ "
                        "from that of the same recording as a file"});
  }
  if (speech_ && windows_->samples() == 0) {
    warnings.push_back({"no_speech", "voice activity detection found no speech"});
  }
  notices_.report(transcript_);
  if (plan_.options.n_best > 1 && decoded_windows_ > 1) {
    warnings.push_back({"no_alternatives", "the recording has more than one window: no n-best"});
  }
  result_ = std::move(transcript_);
}

}  // namespace oasr::engine
