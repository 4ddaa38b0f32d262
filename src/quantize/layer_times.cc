#include "quantize/layer_times.h"

#include "api/loaded_facade.h"
#include "base/result.h"

namespace oasr::quantize {

Result<MeasuredTimes> measure_times(const EngineConfig& engine, std::span<const std::string> recordings,
                                    const TranscribeOptions& decode, const std::function<bool()>& cancelled,
                                    const load::LoadedModel* loaded) {
  auto recognizer = TRY(loaded ? LoadedFacade::recognizer(*loaded, engine) : Recognizer::load(engine));
  double seconds = 0;
  Callbacks callbacks;
  callbacks.cancelled = cancelled;
  for (const bool measured : {false, true}) {
    recognizer.measure_layers(measured);
    for (const std::string& path : recordings) {
      AudioInput input;
      input.path = path;
      const Transcript transcript = TRY(recognizer.transcribe(input, decode, callbacks));
      if (measured) seconds += transcript.duration;
    }
  }
  MeasuredTimes times;
  if (seconds <= 0) return times;
  for (const LayerTime& layer : recognizer.layer_times()) {
    const double ms = 1000 * layer.seconds / seconds;
    times.layers[layer.layer] = ms;
    times.total += ms;
  }
  return times;
}

}  // namespace oasr::quantize
