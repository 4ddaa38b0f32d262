// Writing a Hugging Face folder.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/native.h"

namespace oasr {

// A document that says something of the tensors as they were written.
struct TensorDocument {
  std::string name;
  std::function<std::string(const Checksums& tensors)> text;
};

// Writes model.safetensors, the documents that read_huggingface() knows by their names, and the tokenizer's
// files, and what `about` says of the tensors. The folder appears complete or not at all and must not exist
// or be empty. Errors: write_native()'s; unsupported for content that such a folder can not have (no
// config.json, another kind of tokenizer).
Status write_huggingface(const std::filesystem::path& folder, const NativeContent& content,
                         const TensorDocument& about, const WriteProgress& progress = {});

}  // namespace oasr
