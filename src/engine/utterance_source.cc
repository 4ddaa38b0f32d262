#include "engine/utterance_source.h"

#include <algorithm>
#include <utility>

namespace oasr::engine {
namespace {

constexpr std::size_t kReadTogether = 128'000;  // samples at a time: work for many threads

// For recordings that are cut only because they are long: pauses between sentences.
VadOptions pauses() {
  VadOptions options;
  options.min_silence_ms = 500;
  options.speech_pad_ms = 200;
  options.max_speech_s = kLongestPiece;
  return options;
}

}  // namespace

UtteranceSource::UtteranceSource(AudioSource& audio, int sample_rate, const VadOptions& vad, ForEach each)
    : audio_(audio), sample_rate_(sample_rate), options_(vad), each_(std::move(each)) {
  if (options_.max_speech_s <= 0 || options_.max_speech_s > kLongestPiece) options_.max_speech_s = kLongestPiece;
}

// Appends the next samples to what is held, and hears them when the recording is cut.
Status UtteranceSource::read_more() {
  const std::size_t before = held_.size();
  held_.resize(before + kReadTogether);
  const std::size_t count = TRY(audio_.read(std::span(held_).subspan(before)));
  held_.resize(before + count);
  samples_ += static_cast<std::int64_t>(count);
  ended_ = count == 0;
  if (!vad_) return {};
  scratch_.clear();
  if (ended_) {
    vad_->finish(scratch_);
  } else {
    vad_->push(std::span(held_).subspan(before), scratch_, each_);
  }
  found_.insert(found_.end(), scratch_.begin(), scratch_.end());
  return {};
}

Status UtteranceSource::start_cutting() {
  if (sample_rate_ != 16'000) {
    return unexpected(ErrorCode::unsupported,
                      "recordings over " + std::to_string(static_cast<int>(kLongestWhole)) +
                          " s are cut at pauses, which are found at 16 kHz only; the model's rate is " +
                          std::to_string(sample_rate_) + " Hz",
                      {}, "cut the recording before");
  }
  vad_.emplace(options_.enabled ? options_ : pauses());
  scratch_.clear();
  vad_->push(held_, scratch_, each_);
  if (ended_) vad_->finish(scratch_);
  found_.insert(found_.end(), scratch_.begin(), scratch_.end());
  return {};
}

Status UtteranceSource::begin() {
  begun_ = true;
  const auto most = static_cast<std::size_t>(kLongestWhole * sample_rate_);
  if (!options_.enabled) {
    while (!ended_ && held_.size() <= most) TRY(read_more());
    if (ended_) return {};
  }
  return start_cutting();
}

Result<std::optional<Utterance>> UtteranceSource::next() {
  std::optional<Utterance> utterance;
  if (!begun_) TRY(begin());
  if (!vad_) {  // all of it, once
    if (held_.empty()) return utterance;
    utterance = Utterance{.samples = std::move(held_), .begin = 0};
    held_.clear();
    return utterance;
  }
  while (found_.empty() && !ended_) {
    const std::int64_t settled = std::min(vad_->settled(), samples_);
    if (settled > held_begin_) {
      held_.erase(held_.begin(), held_.begin() + (settled - held_begin_));
      held_begin_ = settled;
    }
    TRY(read_more());
  }
  if (found_.empty()) return utterance;
  const SampleRange range = found_.front();
  found_.pop_front();
  const auto at = held_.begin() + (range.begin - held_begin_);
  utterance = Utterance{.samples = {at, at + (range.end - range.begin)}, .begin = range.begin};
  return utterance;
}

}  // namespace oasr::engine
