// What a stream is asked for and what it tells.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "oasr/transcript.h"

namespace oasr {

// Encoder frames of a chunk when TranscribeOptions names no chunk size.
inline constexpr int kStreamingChunkSize = 16;

// A rule that ends an utterance, when all three hold; seconds.
struct Endpoint {
  bool must_contain_speech = false;  // something was recognised since the utterance began
  double trailing_silence = 0;       // since the last token
  double utterance_length = 0;
};

struct StreamingOptions {
  // The first rule that fires ends an utterance: silence alone, silence after speech, length. None: an
  // utterance ends with the audio.
  std::vector<Endpoint> endpoints = {{false, 2.4, 0}, {true, 1.2, 0}, {false, 0, 20}};
  bool partial_results = true;
};

struct StreamEvent {
  enum class Kind {
    partial,  // the text of the utterance so far
    final,    // the utterance is over: its segment, after rescoring
    done,     // the audio is over and decoded
    failed,   // the session is over: `text` says why
  };
  Kind kind = Kind::partial;
  int utterance = 0;            // counted from 0
  std::string text;             // partial: all of the utterance so far
  std::size_t stable = 0;       // partial: bytes of the text that will not change before rescoring
  double time = 0;              // seconds of audio that are decoded
  Segment segment;              // final
  std::string endpoint;         // final: which rule ended it; empty: the end of the audio
};

}  // namespace oasr
