// What a transcription gives back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace oasr {

struct Word {
  std::string text;          // with the leading space that joins it to the word before
  double start = 0, end = 0; // seconds from the start of the audio
  double probability = 0;    // mean over its tokens
};

struct Segment {
  int id = 0;
  int seek = 0;              // first frame (10 ms) of the window that it was decoded in
  double start = 0, end = 0; // seconds
  std::string text;
  std::vector<std::int32_t> tokens;
  double temperature = 0;
  double avg_logprob = 0;
  double compression_ratio = 0;
  double no_speech_prob = 0;
  std::vector<Word> words;   // with word timestamps only
};

// A condition that the caller should see. `kind` is stable, `message` is for people.
struct Warning {
  std::string kind;          // "truncated_audio", "no_speech", "empty_result", "running_maximum", …
  std::string message;
};

struct Alternative {
  std::string text;
  std::vector<std::int32_t> tokens;
  double avg_logprob = 0;
  double score = 0;          // what it was ranked by: log-probability as the decode mode defines it
};

struct Transcript {
  std::string text;
  std::string language;            // code, "en"
  double language_probability = 0; // 0 when it was given, not detected
  double duration = 0;             // seconds of audio read
  bool truncated = false;          // the audio was damaged or ended early
  std::vector<Segment> segments;
  std::vector<Alternative> alternatives;  // n-best of a one-window clip, best first
  std::vector<Warning> warnings;
  std::uint64_t seed = 0;          // of temperature sampling
  // How the model ran.
  std::string dtype;               // of the weights, "float16"; empty: not known
  std::string arithmetic;          // of what is not quantized, "float32"; empty: not known
  std::string quantization;        // schemes of its layers, "int8_w8a8"; empty: full precision
  std::vector<std::string> quantization_options;  // as given (EngineConfig)
};

}  // namespace oasr
