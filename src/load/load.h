// The one load sequence: read, map names, strict check, cast, pack, bind, report.
#pragma once

#include <filesystem>
#include <memory>

#include "base/result.h"
#include "device/thread_pool.h"
#include "models/speech_model.h"

namespace oasr::load {

struct LoadOptions {
  // Storage of weight matrices; nothing keeps 16-bit weights as they are and makes 32-bit ones
  // float32. Arithmetic is float32 always.
  std::optional<DType> dtype;
};

// Loads any registered architecture from any container. A missing, extra or misshapen tensor is an
// error that names it.
Result<std::shared_ptr<const models::SpeechModel>> load_model(const std::filesystem::path& path,
                                                              const LoadOptions& options,
                                                              const ExecContext& context);

}  // namespace oasr::load
