// Decodes the calibration set at full precision, and keeps what the inputs of the layers look like.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "calib/collector.h"
#include "load/load.h"
#include "quantize/calibration_set.h"

namespace oasr::quantize {

struct CalibrateOptions {
  std::string language = "auto";
  std::string dtype = "float32";  // of the model's matrices, for who keeps the statistics
  std::uint64_t seed = 0;
  std::function<void(double done, double total)> progress;  // utterances
  std::function<bool()> cancelled;
};

struct Calibrated {
  calib::Statistics statistics;
  double seconds = 0;              // of audio
  std::vector<std::string> notes;  // recordings that no speech was heard in, …
};

// The layers that calibration watches: all that a scheme could take. Consumers of a chain keep what a static
// scale of a smoothed input needs. And the keys of attention that could be smoothed.
std::vector<calib::WatchedLayer> watched_layers(const std::vector<quant::LayerFacts>& facts,
                                                const quant::QuantLayout& layout);

// One utterance at a time, through the engine that serves the model, greedily at temperature 0 (Whisper) or in
// the model's own mode (CTC). Padding of Whisper's windows is left out. The model must be at full precision.
// Errors: bad_audio when no recording has speech in it; bad_checkpoint for NaN; cancelled.
Result<Calibrated> calibrate(const std::shared_ptr<const models::SpeechModel>& model,
                             const CalibrationSet& set, const std::vector<calib::WatchedLayer>& layers,
                             const CalibrateOptions& options, ExecContext context);

}  // namespace oasr::quantize
