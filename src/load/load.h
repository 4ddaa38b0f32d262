// The one load sequence: read, choose methods, strict load, cast, pack, bind, link, report.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "base/result.h"
#include "device/thread_pool.h"
#include "load/quantization_report.h"
#include "models/registry.h"
#include "models/speech_model.h"

namespace oasr::load {

struct LoadOptions {
  // Storage of full-precision matrices; nothing keeps 16-bit weights as they are and makes
  // everything else float32.
  std::optional<DType> dtype = {};
  quant::QuantRequest quantization = {};
  // With a context that has a GPU: false, to be refused if the model has no kernels for it; true, to run on
  // the processor then, with a note.
  bool gpu_optional = false;
  bool link = true;  // false: every layer quantizes its own input, so that an observer sees it
  bool originals = false;  // also LoadedModel::originals
};

struct LoadedModel {
  std::shared_ptr<const models::SpeechModel> model;
  quant::QuantizationSpec quantization;  // empty: full precision
  QuantizationReport report;             // what every layer runs as
  bool on_gpu = false;                   // the model's numbers are on the GPU of the context
  // What the model was read from, for saving: configuration, tokenizer, container.
  Checkpoint source;
  // Every full-precision matrix as the source has it, if asked for: the model may keep fewer bits.
  std::vector<TensorSource> originals = {};
};

// Whether a device computes so: a GPU everything, the processor float32 only.
Status check_arithmetic(Arithmetic arithmetic, bool on_gpu);

// Loads any registered architecture from any container, and logs what it is and how it will run. A
// missing, extra, misshapen or mistyped tensor is an error that names it, and so is a request that
// a checkpoint's own quantization does not allow.
Result<LoadedModel> load_model(const std::filesystem::path& path, const LoadOptions& options,
                               const ExecContext& context);
// The same from a checkpoint that is open.
Result<LoadedModel> load_checkpoint(Checkpoint checkpoint, const LoadOptions& options,
                                    const ExecContext& context);

}  // namespace oasr::load
