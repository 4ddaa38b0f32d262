// oasr's own checkpoints: a folder of oasr_config.json, model.safetensors under the model's own
// layer names, and the tokenizer's files. docs/formats.md describes them.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/file_bytes.h"
#include "checkpoint/safetensors_writer.h"

namespace oasr {

// What a native checkpoint is written from. All of it comes back from read_native, exactly.
struct NativeContent {
  std::string architecture;                         // row of the architecture table: "whisper"
  std::string source_container;                     // row of the container table: "huggingface"
  std::map<std::string, std::string> source_facts;  // more of the source, free ("ftype": "q5_0")
  std::vector<std::string> notes;
  std::map<std::string, std::string> documents;  // texts of JSON objects, none is "quantization"
  TokenizerSource tokenizer;
  // Text of a JSON object; it comes back as the document "quantization", compact and with keys in
  // alphabetical order. Present: format version 2; else 1, full precision.
  std::optional<std::string> quantization;
  std::vector<TensorSource> tensors;
};

// Writes `folder`, which appears complete or not at all and must not exist or be empty. The same
// content gives the same bytes. Every file is flushed to disk. Memory: safetensors_writer.h.
// Errors: invalid_argument if `folder` exists or the content can not be kept (a text that is not
// UTF-8, a document that is no JSON object, a name that the reader refuses), unsupported for
// tensors without a dtype of safetensors, io, cancelled.
Status write_native(const std::filesystem::path& folder, const NativeContent& content,
                    const WriteProgress& progress = {});

// Puts another quantization (the text of a JSON object) in place of that of a checkpoint that write_native() wrote:
// the bytes are those of writing it anew. Errors: those of reading and writing oasr_config.json; invalid_argument
// for one at full precision.
Status rewrite_quantization(const std::filesystem::path& folder, const std::string& quantization);

// Whether native checkpoints have files of this name.
bool is_native_file(std::string_view name);

// True if the text is a JSON object with "format": "oasr", whatever else is wrong with it.
bool names_native_format(std::string_view text);

// A file of a native checkpoint by its plain name.
using OpenPart = std::function<Result<FileBytes>(const std::string& name)>;

// Reads a checkpoint from its parts: strictly (docs/formats.md), with the checksum of every tensor
// and every file of the tokenizer. Whatever is corrupt, missing or too much is named.
Result<Checkpoint> read_native_parts(const OpenPart& open);

}  // namespace oasr
