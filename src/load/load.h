// The one load sequence: read, map names, strict check, cast, pack, bind, report.
#pragma once

#include <filesystem>
#include <memory>

#include "base/result.h"
#include "device/thread_pool.h"
#include "models/registry.h"
#include "models/speech_model.h"

namespace oasr::load {

using LoadOptions = models::ModelOptions;

// Loads any registered architecture from any container, and logs what it is and how it will run. A
// missing, extra or misshapen tensor is an error that names it.
Result<std::shared_ptr<const models::SpeechModel>> load_model(const std::filesystem::path& path,
                                                              const LoadOptions& options,
                                                              const ExecContext& context);

}  // namespace oasr::load
