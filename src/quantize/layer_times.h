// Milliseconds of every layer, of a model that runs as a user would run it.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>

#include "oasr/recognizer.h"

namespace oasr::quantize {

struct MeasuredTimes {
  std::map<std::string, double> layers;  // by path: wall milliseconds a second of audio
  double total = 0;                      // of all layers, those without a matrix included
};

// Loads the model and decodes the recordings once to warm up and once with a clock on every layer.
Result<MeasuredTimes> measure_times(const EngineConfig& engine, std::span<const std::string> recordings,
                                    const TranscribeOptions& decode, const std::function<bool()>& cancelled);

}  // namespace oasr::quantize
