// Milliseconds of every layer, of a model that runs as a user would run it.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>

#include "load/load.h"
#include "oasr/recognizer.h"

namespace oasr::quantize {

struct MeasuredTimes {
  std::map<std::string, double> layers;  // by path: wall milliseconds a second of audio
  double total = 0;                      // of all layers, those without a matrix included
};

// Decodes the recordings once to warm up and once with a clock on every layer. `loaded`: the model of `engine` as it
// is served, in memory; null: it is loaded.
Result<MeasuredTimes> measure_times(const EngineConfig& engine, std::span<const std::string> recordings,
                                    const TranscribeOptions& decode, const std::function<bool()>& cancelled,
                                    const load::LoadedModel* loaded = nullptr);

}  // namespace oasr::quantize
