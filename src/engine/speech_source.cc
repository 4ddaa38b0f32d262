#include "engine/speech_source.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "features/log_mel.h"

namespace oasr::engine {

void TimeMap::append(const SampleRange& piece) {
  CHECK(piece.begin <= piece.end, "a piece has no negative length");
  const std::int64_t size = piece.end - piece.begin;
  if (!pieces_.empty() && pieces_.back().begin + pieces_.back().size == piece.begin) {
    pieces_.back().size += size;
    return;
  }
  const std::int64_t joined = pieces_.empty() ? 0 : pieces_.back().joined + pieces_.back().size;
  pieces_.push_back({joined, piece.begin, size});
}

// The last piece that begins at or before the sample.
std::size_t TimeMap::piece_of_start(std::int64_t sample) const {
  const auto after = std::upper_bound(pieces_.begin() + 1, pieces_.end(), sample,
                                      [](std::int64_t s, const Piece& p) { return s < p.joined; });
  return static_cast<std::size_t>(after - pieces_.begin()) - 1;
}

// The last piece that begins before the sample.
std::size_t TimeMap::piece_of_end(std::int64_t sample) const {
  const auto from = std::lower_bound(pieces_.begin() + 1, pieces_.end(), sample,
                                     [](const Piece& p, std::int64_t s) { return p.joined < s; });
  return static_cast<std::size_t>(from - pieces_.begin()) - 1;
}

TimeRange TimeMap::range(const TimeRange& joined) const {
  if (pieces_.empty()) return joined;
  const auto sample = [](double seconds) {
    return static_cast<std::int64_t>(std::nearbyint(seconds * kWhisperSampleRate));
  };
  std::int64_t start = sample(joined.start), end = sample(joined.end);
  std::size_t first = piece_of_start(start), last = piece_of_end(end);
  if (first < last && end - pieces_[last].joined <= margin_) {
    end = pieces_[last].joined;
    --last;
  }
  if (first < last && pieces_[first + 1].joined - start <= margin_) {
    ++first;
    start = pieces_[first].joined;
  }
  const auto real = [&](std::int64_t s, const Piece& piece) {
    return static_cast<double>(piece.begin + s - piece.joined) / kWhisperSampleRate;
  };
  const double real_start = real(start, pieces_[first]);
  return {real_start, std::max(real_start, real(end, pieces_[last]))};
}

std::vector<SampleRange> TimeMap::pieces() const {
  std::vector<SampleRange> ranges;
  for (const Piece& piece : pieces_) ranges.push_back({piece.begin, piece.begin + piece.size});
  return ranges;
}

SpeechSource::SpeechSource(AudioSource& audio, const VadOptions& options)
    : audio_(audio),
      options_(options),
      vad_(options),
      times_(static_cast<std::int64_t>(options.speech_pad_ms * kWhisperSampleRate / 1000)),
      chunk_(kWhisperSampleRate) {}

Result<std::size_t> SpeechSource::read(std::span<float> out) {
  while (speech_place_ == speech_.size() && !ended_) TRY(read_more());
  const std::size_t size = std::min(out.size(), speech_.size() - speech_place_);
  std::copy_n(speech_.begin() + static_cast<std::ptrdiff_t>(speech_place_), size, out.begin());
  speech_place_ += size;
  return size;
}

// One chunk of the recording further. Replaces the speech that was read by what is new.
Status SpeechSource::read_more() {
  speech_.clear();
  speech_place_ = 0;
  const std::size_t size = TRY(audio_.read(chunk_));
  const auto samples = std::span<const float>(chunk_).first(size);
  held_.insert(held_.end(), samples.begin(), samples.end());
  if (!complete_) detect(samples);
  ended_ = size == 0;
  complete_ = complete_ || ended_;
  take_found();
  return {};
}

void SpeechSource::detect(std::span<const float> samples) {
  found_.clear();
  if (samples.empty()) {
    vad_.finish(found_);
  } else {
    vad_.push(samples, found_);
  }
  recording_samples_ += static_cast<std::int64_t>(samples.size());
  for (const SampleRange& range : found_) {
    times_.append(range);
    to_take_.push_back(range);
  }
}

// Copies what is held of the found pieces, and lets go of what no piece can need any more.
void SpeechSource::take_found() {
  const std::int64_t held_end = held_begin_ + static_cast<std::int64_t>(held_.size());
  while (!to_take_.empty()) {
    SampleRange& range = to_take_.front();
    CHECK(range.begin >= held_begin_, "speech that is not held any more");
    const std::int64_t end = std::min(range.end, held_end);
    if (range.begin < end) {
      speech_.insert(speech_.end(), held_.begin() + (range.begin - held_begin_),
                     held_.begin() + (end - held_begin_));
      range.begin = end;
    }
    if (range.begin < range.end) break;  // the rest is not read yet
    to_take_.pop_front();
  }
  std::int64_t needed = complete_ ? held_end : std::min(held_end, vad_.settled());
  if (!to_take_.empty()) needed = std::min(needed, to_take_.front().begin);
  drop_before(needed);
}

void SpeechSource::drop_before(std::int64_t sample) {
  if (sample <= held_begin_) return;
  held_.erase(held_.begin(), held_.begin() + (sample - held_begin_));
  held_begin_ = sample;
}

Status SpeechSource::rewind() {
  TRY(audio_.rewind());
  ended_ = false;
  held_.clear();
  held_begin_ = 0;
  speech_.clear();
  speech_place_ = 0;
  to_take_.clear();
  if (complete_) {
    const auto pieces = times_.pieces();
    to_take_.assign(pieces.begin(), pieces.end());
    return {};
  }
  vad_ = VadStream(options_);
  times_.clear();
  recording_samples_ = 0;
  return {};
}

}  // namespace oasr::engine
