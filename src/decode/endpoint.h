// Rules that end an utterance in a stream, as values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace oasr::decode {

// Fires when all three hold. Times are seconds.
struct EndpointRule {
  bool must_contain_nonsilence = false;  // something was recognised since the utterance began
  double min_trailing_silence = 0;       // since the last token
  double min_utterance_length = 0;
};

struct EndpointOptions {
  // sherpa's defaults: silence alone, silence after speech, an utterance that goes on.
  std::vector<EndpointRule> rules = {{false, 2.4, 0}, {true, 1.2, 0}, {false, 0, 20}};
};

// Errors (invalid_argument): times that are negative or not finite; a rule that would always fire.
Status check_endpoint_options(const EndpointOptions& options);

// How far an utterance is, in seconds.
struct UtteranceProgress {
  bool contains_nonsilence = false;
  double trailing_silence = 0;
  double length = 0;
};

// Progress of a CTC search: `frames` frames, of which `trailing` passed since the last token's.
UtteranceProgress progress_of(int frames, int trailing, bool has_tokens, double seconds_per_frame);

struct Endpoint {
  int rule = 0;     // in the list, counted from 1
  std::string why;  // "rule 2: 1.24 s of silence after speech (1.2 s end an utterance)"
};

// The first rule that fires. No rules: never.
std::optional<Endpoint> find_endpoint(const EndpointOptions& options,
                                      const UtteranceProgress& progress);

}  // namespace oasr::decode
