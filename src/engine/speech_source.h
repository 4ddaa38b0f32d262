// A recording without its silences: what voice activity detection leaves, and the way back to the
// recording's own time.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "audio/audio_source.h"
#include "features/silero_vad.h"

namespace oasr::engine {

struct TimeRange {
  double start = 0, end = 0;  // seconds
  bool operator==(const TimeRange&) const = default;
};

// From times in joined pieces of a recording to times in the recording. Exact to the sample.
class TimeMap {
 public:
  // At the ends of every piece `margin` samples are silence.
  explicit TimeMap(std::int64_t margin = 0) : margin_(margin) {}

  // Pieces in order; one that goes on where the last ended becomes part of it.
  void append(const SampleRange& piece);
  void clear() { pieces_.clear(); }

  // A range of the joined pieces as one of the recording. At a joint a start belongs to the piece
  // that begins there, an end to the piece before it. A range over a joint that reaches into a
  // piece by its silent margin only is cut to the pieces where it holds speech.
  TimeRange range(const TimeRange& joined) const;
  double start(double seconds) const { return range({seconds, seconds}).start; }

  // The pieces, joined where they touch.
  std::vector<SampleRange> pieces() const;

 private:
  struct Piece {
    std::int64_t joined = 0;  // its first sample among the joined ones
    std::int64_t begin = 0;   // in the recording
    std::int64_t size = 0;
  };
  std::size_t piece_of_start(std::int64_t sample) const;
  std::size_t piece_of_end(std::int64_t sample) const;

  std::int64_t margin_;
  std::vector<Piece> pieces_;
};

// The speech of `audio`, piece after piece, as an AudioSource. The first pass detects; passes after
// a complete first one repeat its pieces. Memory does not grow with the recording but for the list
// of pieces. The audio must outlive the source.
class SpeechSource final : public AudioSource {
 public:
  SpeechSource(AudioSource& audio, const VadOptions& options);

  const AudioInfo& info() const override { return audio_.info(); }
  Result<std::size_t> read(std::span<float> out) override;
  const std::optional<std::string>& truncated() const override { return audio_.truncated(); }
  const std::vector<std::string>& warnings() const override { return audio_.warnings(); }
  Status rewind() override;
  bool rewindable() const override { return audio_.rewindable(); }

  const TimeMap& times() const { return times_; }
  // Samples of the recording read so far, silences included; all of them after the first pass.
  std::int64_t recording_samples() const { return recording_samples_; }

 private:
  Status read_more();
  void detect(std::span<const float> samples);
  void take_found();
  void drop_before(std::int64_t sample);

  AudioSource& audio_;
  VadOptions options_;
  VadStream vad_;
  bool complete_ = false;  // the first pass saw the end
  bool ended_ = false;     // this pass did
  std::int64_t recording_samples_ = 0;
  TimeMap times_;
  std::deque<SampleRange> to_take_;  // found and not yet copied out
  std::vector<SampleRange> found_;   // scratch
  std::vector<float> chunk_;
  std::vector<float> held_;  // samples of the recording from held_begin_ on
  std::int64_t held_begin_ = 0;
  std::vector<float> speech_;  // to be read, from speech_place_ on
  std::size_t speech_place_ = 0;
};

}  // namespace oasr::engine
