// The table of architectures.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "models/speech_model.h"

namespace oasr::models {

struct ModelOptions {
  // Storage of weight matrices: float32, float16 or bfloat16; nothing keeps 16-bit weights as they
  // are and makes everything else float32. Arithmetic is float32 always.
  std::optional<DType> dtype;
};

// A row of the table.
struct Architecture {
  std::string_view name;  // "whisper"
  std::string_view what;  // one line for help
  bool (*detect)(const Checkpoint& checkpoint);
  Result<std::shared_ptr<const SpeechModel>> (*load)(const Checkpoint& checkpoint,
                                                     const ModelOptions& options,
                                                     const ExecContext& context);
};
std::span<const Architecture> architectures();

// The architecture of a checkpoint, or an unsupported error that says what is served.
Result<const Architecture*> find_architecture(const Checkpoint& checkpoint);

}  // namespace oasr::models
