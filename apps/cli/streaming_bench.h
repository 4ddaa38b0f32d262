// `oasr bench --streaming`: what streams cost.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "oasr/options.h"
#include "oasr/result.h"

namespace oasr::cli {

struct StreamingBench {
  EngineConfig engine;
  TranscribeOptions options;
  std::vector<std::string> audio;
  int repeat = 3;    // passes of one stream; medians are shown
  int sessions = 1;  // more: also that many streams at the same time, over the recordings in turn
};

// The report: every recording alone, then all sessions together. Audio comes in pieces of 20 ms at the pace of
// speech, in virtual time: a clock that waits for the audio and adds what was measured to compute it, so that
// late audio is decoded together. Errors: those of StreamingRecognizer; a recording without text, or whose text
// is another beside other streams.
Result<nlohmann::ordered_json> measure_streaming(const StreamingBench& bench);
std::string streaming_bench_text(const nlohmann::ordered_json& report);

}  // namespace oasr::cli
