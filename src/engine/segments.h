// From the tokens of a window to its segments and to where the next window starts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/speech_model.h"
#include "oasr/transcript.h"

namespace oasr::engine {

// The time of a 10 ms frame, in the reference's arithmetic.
inline double seconds_at(std::int64_t frame) { return static_cast<double>(frame) * 160 / 16000; }

// What the decoder said about a window, the same for all its segments.
struct DecodedWindow {
  std::vector<TokenId> tokens;  // with timestamps, without eot
  double temperature = 0;
  double avg_logprob = 0;
  double compression_ratio = 0;
  double no_speech_prob = 0;
};

struct WindowSegments {
  std::vector<Segment> segments;         // times from the start of the recording
  std::int64_t seek = 0;                 // frame of the next window
  bool single_timestamp_ending = false;  // the last segment ended and nothing was said after it
};

// Whisper's seek rule. Between two timestamps in a row a segment ends, and the window ends after
// the last such pair, so that a cut segment is decoded again; without a pair, or when the last
// token alone is a timestamp, the whole window of `frames` frames from frame `seek` is done. With
// `keep_tail` an unfinished last segment is kept to the window's end instead.
WindowSegments split_segments(const DecodedWindow& decoded, std::int64_t seek, int frames,
                              const models::AedModel& model, bool keep_tail);

// Text tokens (below eot) only.
std::vector<TokenId> text_tokens(std::span<const TokenId> tokens, TokenId eot);

}  // namespace oasr::engine
