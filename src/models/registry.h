// The table of architectures.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "layers/parameters.h"
#include "models/speech_model.h"
#include "quant/layout.h"
#include "quant/selection.h"

namespace oasr::models {

// Storage of full-precision matrices, and which layers are quantized and how.
using ModelOptions = layers::WeightOptions;

// A row of the table.
struct Architecture {
  std::string_view name;  // "whisper"
  std::string_view what;  // one line for help
  bool gpu;               // whether its forward passes run on GPUs
  bool (*detect)(const Checkpoint& checkpoint);
  // The layers that hold a matrix, and what the structure allows to fold and to fuse.
  Result<std::vector<quant::LayerFacts>> (*layer_facts)(const Checkpoint& checkpoint);
  Result<quant::QuantLayout> (*quantization_layout)(const Checkpoint& checkpoint);
  Result<std::shared_ptr<const SpeechModel>> (*load)(const Checkpoint& checkpoint,
                                                     const ModelOptions& options,
                                                     const ExecContext& context);
};
std::span<const Architecture> architectures();

// The architecture of a checkpoint, or an unsupported error that says what is served.
Result<const Architecture*> find_architecture(const Checkpoint& checkpoint);

}  // namespace oasr::models
