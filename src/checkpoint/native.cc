// Reader of oasr's own checkpoints.
#include "checkpoint/native.h"

#include <algorithm>
#include <utility>

#include "checkpoint/containers.h"
#include "checkpoint/native_config.h"
#include "checkpoint/native_files.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/tensor_checksums.h"
#include "checkpoint/token_lines.h"

namespace oasr {
namespace {

constexpr const char* kAgain = "download or copy the folder again, or convert the source again";

Unexpected bad_native(std::string what, std::string where) {
  return unexpected(ErrorCode::bad_checkpoint, std::move(what), std::move(where), kAgain);
}

std::string text_of(const FileBytes& file) {
  return std::string(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
}

// The folder of a native checkpoint, given by itself or by one of its files.
fs::path native_folder(const fs::path& path) {
  const auto name = path.filename();
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return path;
  return name == kNativeConfig || name == kNativeWeights ? path.parent_path() : path;
}

// The text of a tokenizer that the file `name` holds; null if there is none.
std::string* text_in(TokenizerSource& source, std::string_view name) {
  for (const auto& row : kTokenizerTexts) {
    if (row.name == name) return &(source.*row.text);
  }
  return nullptr;
}

// Only files of known names are opened, so that none lies outside the folder.
Result<TokenizerSource> read_tokenizer(const NativeConfig& config, const OpenPart& open,
                                       std::vector<fs::path>& files) {
  TokenizerSource source{.kind = config.tokenizer_kind,
                         .pattern = config.tokenizer_pattern,
                         .origin = config.tokenizer_origin};
  for (const auto& [name, checksum] : config.tokenizer_files) {
    auto* text = text_in(source, name);
    if (text == nullptr && name != kTokenLines) {
      return bad_native("\"" + name + "\" is no file of a tokenizer", {});
    }
    const auto file = TRY(open(name));
    files.push_back(file.path);
    if (file.bytes.size() > kMaxTokenizerFile) return bad_native("is larger than 64 MiB", file.where());
    if (crc32_of(file.bytes) != checksum) {
      return bad_native("does not match its checksum in oasr_config.json", file.where());
    }
    if (text != nullptr) {
      *text = text_of(file);
    } else {
      source.tokens = TRY(located(read_token_lines(text_of(file)), file.where()));
    }
  }
  return source;
}

Result<StateDict> read_tensors(const NativeConfig& config, const FileBytes& file) {
  auto dict = read_safetensors(file);
  if (!dict) {
    // A tensor that was taken out leaves a hole, of which that reader names the end.
    const auto names = safetensors_names(file);
    const auto same = names ? check_tensor_names(*names, config.tensors, kNativeConfig) : Status();
    return same ? unexpected(std::move(dict).error()) : bad_native(same.error().what, {});
  }
  auto checked = check_tensors(*dict, config.tensors, kNativeConfig);
  if (!checked) return bad_native(std::move(checked).error().what, {});
  return dict;
}

Result<FileBytes> open_part(const fs::path& folder, const std::string& name) {
  const auto path = folder / name;
  if (path_exists(path)) return FileBytes::map(path);
  return unexpected(ErrorCode::not_found, "is missing", path.string(), kAgain);
}

}  // namespace

bool is_native_file(std::string_view name) {
  return name == kNativeConfig || name == kNativeWeights || name == kTokenLines ||
         std::ranges::any_of(kTokenizerTexts, [&](const TokenizerText& row) { return row.name == name; });
}

int detect_native(const fs::path& path) {
  const auto folder = native_folder(path);
  const auto config = open_part(folder, kNativeConfig);
  if (!config) return kNotThis;
  const bool small = config->bytes.size() <= kMaxNativeConfig;
  return small && names_native_format(text_of(*config)) ? kByContent : kByConfig;
}

Result<Checkpoint> read_native_parts(const OpenPart& open) {
  const auto file = TRY(open(kNativeConfig));
  if (file.bytes.size() > kMaxNativeConfig) return bad_native("is larger than 16 MiB", file.where());
  auto config = TRY(located(parse_native_config(text_of(file)), file.where()));
  Checkpoint checkpoint;
  checkpoint.container = "native";
  checkpoint.files.push_back(file.path);
  const auto weights = TRY(open(config.tensor_file));
  checkpoint.files.push_back(weights.path);
  checkpoint.tokenizer = TRY(located(read_tokenizer(config, open, checkpoint.files), file.where()));
  checkpoint.tensors = TRY(located(read_tensors(config, weights), weights.where()));
  checkpoint.architecture = std::move(config.architecture);
  checkpoint.source_container = std::move(config.source_container);
  checkpoint.source_facts = std::move(config.source_facts);
  checkpoint.documents = std::move(config.documents);
  if (config.quantization) checkpoint.documents["quantization"] = std::move(*config.quantization);
  checkpoint.notes = std::move(config.notes);
  return checkpoint;
}

Result<Checkpoint> read_native(const fs::path& path) {
  const auto folder = native_folder(path);
  auto checkpoint =
      TRY(read_native_parts([&](const std::string& name) { return open_part(folder, name); }));
  checkpoint.path = path;
  return checkpoint;
}

}  // namespace oasr
