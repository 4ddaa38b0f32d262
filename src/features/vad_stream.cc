#include <algorithm>
#include <limits>

#include "features/silero_vad.h"

namespace oasr {
namespace {

constexpr double kSamplesPerMs = 16.0;
constexpr double kCuttingSilence = 98 * kSamplesPerMs;  // where overlong speech may be cut

}  // namespace

SpeechSegmenter::SpeechSegmenter(const VadOptions& options)
    : threshold_(static_cast<float>(options.threshold)),
      silence_threshold_(static_cast<float>(std::max(options.threshold - 0.15, 0.01))),
      min_speech_(options.min_speech_ms * kSamplesPerMs),
      max_speech_(options.max_speech_s > 0
                      ? options.max_speech_s * 1000 * kSamplesPerMs - kVadStep -
                            2 * options.speech_pad_ms * kSamplesPerMs
                      : std::numeric_limits<double>::infinity()),
      min_silence_(options.min_silence_ms * kSamplesPerMs),
      pad_(options.speech_pad_ms * kSamplesPerMs) {}

void SpeechSegmenter::push(float probability, std::vector<SampleRange>& speech) {
  const std::int64_t at = next_;
  next_ += kVadStep;
  const bool is_speech = probability >= threshold_;
  if (is_speech && silence_begin_ != 0) {
    silence_begin_ = 0;
    if (resume_ < cut_) resume_ = at;
  }
  if (is_speech && !in_speech_) {
    in_speech_ = true;
    begin_ = at;
  } else if (in_speech_ && static_cast<double>(at - begin_) > max_speech_) {
    const bool has_cut = cut_ != 0;
    append({begin_, has_cut ? cut_ : at}, speech);
    in_speech_ = has_cut && resume_ >= cut_;  // else it has been silent since the cut
    begin_ = resume_;
    forget_silences();
    if (has_cut && probability < silence_threshold_) hear_silence(at, speech);
  } else if (in_speech_ && probability < silence_threshold_) {
    hear_silence(at, speech);
  } else if (in_speech_ && is_speech && static_cast<double>(at - begin_) > min_speech_) {
    link(begin_, speech);  // it ends later than now, so it will not be dropped
  }
  release(at, speech);
}

void SpeechSegmenter::finish(std::int64_t samples, std::vector<SampleRange>& speech) {
  if (in_speech_ && static_cast<double>(samples - begin_) > min_speech_)
    append({begin_, samples}, speech);
  if (pending_) emit(std::min(samples, widened_end(*pending_)), speech);
}

std::int64_t SpeechSegmenter::settled() const {
  if (pending_) return pending_->begin;
  if (linked_begin_) return *linked_begin_;
  return std::max(emitted_end_, widened_begin(in_speech_ ? begin_ : next_));
}

void SpeechSegmenter::hear_silence(std::int64_t at, std::vector<SampleRange>& speech) {
  if (!in_speech_) return;
  if (silence_begin_ == 0) silence_begin_ = at;
  const auto silence = static_cast<double>(at - silence_begin_);
  if (silence > kCuttingSilence) cut_ = silence_begin_;
  if (silence < min_silence_) return;
  if (static_cast<double>(silence_begin_ - begin_) > min_speech_)
    append({begin_, silence_begin_}, speech);
  in_speech_ = false;
  forget_silences();
}

void SpeechSegmenter::forget_silences() { silence_begin_ = cut_ = resume_ = 0; }

void SpeechSegmenter::append(SampleRange range, std::vector<SampleRange>& speech) {
  link(range.begin, speech);
  pending_ = SampleRange{*linked_begin_, range.end};
  linked_begin_.reset();
}

// Divides the silence between the pending range and one that begins at `begin`.
void SpeechSegmenter::link(std::int64_t begin, std::vector<SampleRange>& speech) {
  if (linked_begin_) return;
  linked_begin_ = widened_begin(begin);
  if (!pending_) return;
  const std::int64_t silence = begin - pending_->end;
  if (static_cast<double>(silence) < 2 * pad_) {
    linked_begin_ = begin - silence / 2;
    emit(pending_->end + silence / 2, speech);
  } else {
    emit(widened_end(*pending_), speech);
  }
}

// Hands out the pending range once nothing that follows can touch it.
void SpeechSegmenter::release(std::int64_t at, std::vector<SampleRange>& speech) {
  const std::int64_t next_speech = in_speech_ ? begin_ : at;
  if (pending_ && static_cast<double>(next_speech - pending_->end) >= 2 * pad_) {
    emit(widened_end(*pending_), speech);
  }
}

void SpeechSegmenter::emit(std::int64_t end, std::vector<SampleRange>& speech) {
  speech.push_back({pending_->begin, end});
  emitted_end_ = end;
  pending_.reset();
}

std::int64_t SpeechSegmenter::widened_begin(std::int64_t begin) const {
  return static_cast<std::int64_t>(std::max(0.0, static_cast<double>(begin) - pad_));
}

std::int64_t SpeechSegmenter::widened_end(const SampleRange& range) const {
  return static_cast<std::int64_t>(static_cast<double>(range.end) + pad_);
}

VadStream::VadStream(const VadOptions& options) : segmenter_(options) {}

void VadStream::push(std::span<const float> samples, std::vector<SampleRange>& speech, const ForEach& each) {
  samples_ += static_cast<std::int64_t>(samples.size());
  buffer_.insert(buffer_.end(), samples.begin(), samples.end());
  const std::size_t done = buffer_.size() / kVadStep * kVadStep;
  probabilities_.clear();
  network_.steps(std::span(buffer_).first(done), probabilities_, each);
  for (const float probability : probabilities_) segmenter_.push(probability, speech);
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(done));
}

void VadStream::finish(std::vector<SampleRange>& speech) {
  // As the reference: zeros fill the last step, or are a whole one.
  const std::int64_t samples = samples_;
  push(std::vector<float>(kVadStep - buffer_.size()), speech);
  segmenter_.finish(samples, speech);
}

}  // namespace oasr
