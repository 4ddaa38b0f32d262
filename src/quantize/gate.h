// Is the quantized model as good? Full precision and quantized are decoded on the same audio by the same
// pipeline, and their word errors compared.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "load/load.h"
#include "oasr/eval.h"
#include "oasr/options.h"
#include "oasr/result.h"

namespace oasr::quantize {

// What looks wrong in texts, whatever the reference says.
struct Symptoms {
  std::int64_t empty = 0;      // texts that are empty though the reference is not
  std::int64_t repeating = 0;  // texts with a run of words that repeats
  std::int64_t failed = 0;     // utterances that ended in an error
};

// One way of decoding ("offline", "streaming"), both models.
struct GateMode {
  std::string name;
  std::vector<EvalDifference> groups;  // all first, then sets (of several), then lengths
  Symptoms full, quantized;
  std::vector<std::string> worse, better;  // ids of utterances whose errors changed, the most changed first
};

// Layers that went back to more bits (GateReport::returned_to), in the order in which they were tried.
struct BackOffStep {
  std::vector<std::string> layers;  // all that did
  double increase = 0;              // points
  bool passed = false;
  std::int64_t bytes = 0;  // that this costs
};

struct GateReport {
  std::string manifest;
  std::string normalizer;
  double limit = 0.1;  // points of word error
  std::int64_t utterances = 0;
  double seconds = 0;  // of audio
  std::vector<GateMode> modes;
  double increase = 0;  // the greatest of all modes, points
  bool passed = false;
  std::string verdict;  // in words: what failed and where
  std::string returned_to = "full precision";  // what layers of back_off got: or "int8_w8a8"
  std::vector<BackOffStep> back_off;
};

// What the model is made with: the fewest layers that passed; where none did, those that were tried last. null:
// none went back.
const BackOffStep* kept_step(const GateReport& report);

struct GateOptions {
  std::string manifest;           // JSON Lines, as `oasr eval` reads them
  double max_wer_increase = 0.1;  // points of word error, from 0
  std::string normalizer = "basic";
  int resamples = 10000;  // of the paired bootstrap
  std::uint64_t seed = 1;
  EngineConfig engine;       // of both sides: threads, batch size, …; `model` is each side's own
  TranscribeOptions decode;  // of both sides
  bool streaming = true;     // judge streams too, of a model that can be cut into chunks
};

// `progress` is told of every utterance that is done, with the stage's name ("full precision, offline").
struct GateCallbacks {
  std::function<void(const std::string& stage, std::int64_t done, std::int64_t total)> progress;
  std::function<bool()> cancelled;  // polled; true ends with an Error `cancelled`
};

// What one model heard in one mode.
struct GateSide {
  std::string mode;  // "offline", "streaming"
  EvalReport report;
};

// The rows of the manifest. Errors: options, those of read_eval_manifests() and check_eval_audio(), and
// invalid_argument for a recording that is among `calibration_audio` (paths): a gate listens to audio that
// the quantization has not seen.
Result<EvalInputs> read_gate_inputs(const GateOptions& options,
                                    std::span<const std::string> calibration_audio);

// Decodes all rows offline and, if asked for and the model can stream, as streams in pieces of a tenth of a
// second, as fast as it can. `subject` names the side in stages and reports. An utterance that fails is
// counted, it stops nothing. `loaded`: the same model as it is served, in memory, so that it is there once. Errors:
// those of Recognizer::load(), and cancelled.
Result<std::vector<GateSide>> decode_side(const std::string& subject, const std::string& model,
                                          const EvalInputs& inputs, const GateOptions& options,
                                          const GateCallbacks& callbacks = {},
                                          const load::LoadedModel* loaded = nullptr);

// The verdict on two sides of the same rows. Passed: in every mode the word error of all utterances rises by
// no more than the limit, and no more texts are empty, repeat themselves or fail than at full precision.
// `back_off` is empty still. Errors (invalid_argument): sides of other modes or rows, references without a
// word; bad_audio: nothing could be decoded at full precision.
Result<GateReport> judge(const GateOptions& options, std::span<const GateSide> full,
                         std::span<const GateSide> quantized);

// Counts over the utterances of a report. A text repeats itself if a run of 1 to 8 of its normalized words
// comes at least 4 times in a row and fills 8 words or more, and the reference has no such run.
Symptoms symptoms_of(const EvalReport& report);

}  // namespace oasr::quantize
