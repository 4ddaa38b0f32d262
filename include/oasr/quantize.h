// `oasr quantize`: calibrates a model, writes it quantized, and proves that it still hears as well.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "oasr/options.h"
#include "oasr/result.h"

namespace oasr {

struct QuantizeOptions {
  std::string recipe = "smoothquant_w8a8";  // a name of quantize_recipes(), or a YAML file
  std::vector<std::string> options;         // "static_inputs.observer=minmax", …
  std::optional<std::string> alpha;         // of smoothquant: a number from 0 to 1, or "search"
  std::vector<std::string> ignore;          // globs of layers that stay at full precision
  std::vector<std::string> module_types;    // kinds; empty: linear and pointwise_conv

  std::string calib_manifest;    // JSON Lines with "audio"; empty: the recipe needs none
  std::string audio_root;        // what its paths are relative to; empty: the manifest's folder
  int calib_utterances = 128;
  std::string calib_dtype = "float32";  // storage of the copy that is calibrated: float32, float16, bfloat16
  std::string language = "auto"; // of the calibration audio, for models that ask
  std::string statistics;        // where its result is kept; empty: `destination`.calibration
  std::uint64_t seed = 0;        // of the choice of rows that errors are measured on

  std::string gate_manifest;       // JSON Lines with "audio" and "text"; empty: no gate
  double max_wer_increase = 0.1;   // points
  std::string gate_normalizer = "basic";
  std::string gate_decode;         // decoding mode of CTC models; empty: the model's own
  int gate_attempts = 12;          // gates that backing off may cost

  std::string budget;     // "wer=0.05,bytes=60M,ms=40": a mix of precisions; empty: all that is selected
  bool analyze = false;   // also the error of every layer alone and with all before it
  bool dry_run = false;   // decides and reports, writes nothing
  bool force = false;     // replaces what is at the destination
  std::string device = "auto";  // of the gate and the measured times, as EngineConfig::device
  int threads = 0;
  bool download = true;   // as EngineConfig::download

  // Of the stage: utterances, layers or bytes, of so many.
  std::function<void(const std::string& stage, double done, double total)> progress;
  std::function<void(const std::string& line)> note;
  std::function<bool()> cancelled;  // polled; true stops, and nothing is left but the statistics
};

struct QuantizeOutcome {
  std::string path;         // that was written; empty after a dry run, or if the gate refused
  bool gate_passed = true;  // false: the gate refused, or no mix of precisions meets the budget
  std::string refusal;      // which of them, in words; then nothing was written
  std::string summary;      // for people
  std::string analysis;     // the layers by their error; empty unless asked for
  std::string report_json;  // what quantization_report.json holds
};

// Calibrates the checkpoint at `model` (a path, or a name of the catalogue) and writes the folder
// `destination`: a native checkpoint with quantization_report.json and quantization_report.html. It appears
// complete or not at all. Beside it, `destination`.calibration keeps the statistics for other recipes.
// The same input and options give the same bytes, whatever the threads, the processor and the order of the
// manifest. Errors: those of Recognizer::load(); invalid_argument (options, manifests); bad_audio; io;
// cancelled.
Result<QuantizeOutcome> quantize_model(const std::string& model, const std::string& destination,
                                       const QuantizeOptions& options);

// What can be said before anything is read: the names and ranges of the options.
Status check_quantize_options(const QuantizeOptions& options);

// Every recipe, its algorithms and their options, for people.
std::string quantize_recipes();

}  // namespace oasr
