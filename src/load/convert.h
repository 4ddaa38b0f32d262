// From a loaded model to oasr's own checkpoint.
#pragma once

#include <filesystem>

#include "checkpoint/native.h"
#include "load/load.h"

namespace oasr::load {

// What a checkpoint of the loaded model holds beside tensors and quantization.
NativeContent content_of(const LoadedModel& loaded);

// Writes the model as it is served: full precision as format version 1, quantized as version 2. Loading
// the folder gives the same numbers. Errors are write_native()'s.
Status save_native(const LoadedModel& loaded, const std::filesystem::path& folder,
                   const WriteProgress& progress = {});

}  // namespace oasr::load
