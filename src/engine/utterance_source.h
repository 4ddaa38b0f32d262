// A recording in utterances that a model of whole utterances can take.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "audio/audio_source.h"
#include "features/silero_vad.h"

namespace oasr::engine {

// Recordings up to this long are one utterance. Longer ones are cut at pauses, into pieces of speech no
// longer than kLongestPiece: attention over a whole utterance costs memory and time with its square, and
// models are trained on sentences.
inline constexpr double kLongestWhole = 60;  // seconds
inline constexpr double kLongestPiece = 30;

struct Utterance {
  std::vector<float> samples;
  std::int64_t begin = 0;  // in the recording
};

// Utterances in order, in bounded memory. The audio must outlive the source.
class UtteranceSource {
 public:
  // `vad.enabled`: cut at pauses whatever the length. Its rules are taken as they are, but for the longest
  // piece. Pauses are found with `each`.
  UtteranceSource(AudioSource& audio, int sample_rate, const VadOptions& vad, ForEach each = in_turn);

  // The next utterance; nothing at the end. Errors: the source's, and unsupported for a recording to be cut
  // at a rate that voice activity detection does not know.
  Result<std::optional<Utterance>> next();

  std::int64_t samples() const { return samples_; }  // read so far
  bool was_cut() const { return vad_.has_value(); }

 private:
  Status begin();
  Status start_cutting();
  Status read_more();

  AudioSource& audio_;
  int sample_rate_;
  VadOptions options_;
  ForEach each_;
  bool begun_ = false, ended_ = false;
  std::int64_t samples_ = 0;
  std::vector<float> held_;      // samples of the recording from held_begin_ on
  std::int64_t held_begin_ = 0;
  std::optional<VadStream> vad_;  // nothing: one utterance
  std::deque<SampleRange> found_;
  std::vector<SampleRange> scratch_;
};

}  // namespace oasr::engine
