// Our 4-bit layers under QServe's names.
#pragma once

#include <filesystem>

#include "checkpoint/native.h"
#include "load/load.h"

namespace oasr::load {

// Writes a model that was loaded from an oasr folder with 4-bit layers as a Hugging Face folder with QServe's
// tensors: products that we stack are taken apart, full precision stays as it is, and kQServeDocument says
// what the tensors do not. import_w4() gives the model back, bit for bit. unsupported, with the layer: what
// the layout does not hold (int8, smoothed inputs, layers of more than one form or zero domain, parts that
// are no multiple of 32 channels); the source is no oasr folder, or was not made from a Hugging Face folder.
// Others: write_huggingface()'s.
Status save_qserve(const LoadedModel& loaded, const std::filesystem::path& folder,
                   const WriteProgress& progress = {});

}  // namespace oasr::load
