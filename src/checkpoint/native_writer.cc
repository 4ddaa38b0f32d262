// Writer of oasr's own checkpoints.
#include <utility>

#include "base/fs.h"
#include "base/json.h"
#include "checkpoint/native.h"
#include "checkpoint/native_config.h"
#include "checkpoint/native_files.h"
#include "checkpoint/token_lines.h"

namespace oasr {
namespace {

// (name, text) of the tokenizer's files.
std::map<std::string, std::string> tokenizer_files(const TokenizerSource& source) {
  std::map<std::string, std::string> files;
  for (const auto& row : kTokenizerTexts) {
    if (!(source.*row.text).empty()) files.emplace(row.name, source.*row.text);
  }
  if (!source.tokens.empty()) files.emplace(kTokenLines, write_token_lines(source.tokens));
  return files;
}

// A quantization as it comes back: keys in order.
Result<std::string> compact(const std::string& quantization) {
  const auto json = parse_json(quantization, {});
  if (!json) return unexpected(ErrorCode::invalid_argument, json.error().what, "quantization");
  return json->dump();
}

// Everything but the checksums of the tensors.
Result<NativeConfig> config_of(const NativeContent& content,
                               const std::map<std::string, std::string>& files) {
  NativeConfig config{.architecture = content.architecture,
                      .source_container = content.source_container,
                      .source_facts = content.source_facts,
                      .notes = content.notes,
                      .documents = content.documents,
                      .tokenizer_kind = content.tokenizer.kind,
                      .tokenizer_origin = content.tokenizer.origin,
                      .tokenizer_pattern = content.tokenizer.pattern,
                      .tokenizer_files = {},
                      .tensor_file = kNativeWeights,
                      .tensors = {},
                      .quantization = {}};
  for (const auto& [name, text] : files) {
    if (text.size() > kMaxTokenizerFile) {
      return unexpected(ErrorCode::invalid_argument, "is larger than 64 MiB", name);
    }
    config.tokenizer_files.emplace(name, crc32_of(text));
  }
  if (content.quantization) config.quantization = TRY(compact(*content.quantization));
  return config;
}

Status write_files(const fs::path& folder, const NativeContent& content,
                   const WriteProgress& progress) {
  const auto files = tokenizer_files(content.tokenizer);
  auto config = TRY(config_of(content, files));
  TRY(native_config_text(config));  // refuses the content before the work is done
  config.tensors = TRY(write_safetensors(folder / kNativeWeights, content.tensors, progress));
  for (const auto& [name, text] : files) TRY(write_text_file(folder / name, text));
  return write_text_file(folder / kNativeConfig, TRY(native_config_text(config)));
}

}  // namespace

Status write_native(const fs::path& path, const NativeContent& content,
                    const WriteProgress& progress) {
  auto folder = TRY(AtomicFolder::create(path));
  if (auto written = write_files(folder.temporary(), content, progress); !written) {
    auto error = std::move(written).error();
    // The temporary folder's name helps nobody.
    if (error.code == ErrorCode::io || error.where.empty()) error.where = path.string();
    return unexpected(std::move(error));
  }
  return folder.commit();
}

Status rewrite_quantization(const fs::path& folder, const std::string& quantization) {
  const std::string text = TRY(read_text_file(folder / kNativeConfig));
  NativeConfig config = TRY(parse_native_config(text));
  if (!config.quantization) {
    return unexpected(ErrorCode::invalid_argument, "the checkpoint is at full precision", folder.string());
  }
  config.quantization = TRY(compact(quantization));
  return write_text_file(folder / kNativeConfig, TRY(native_config_text(config)));
}

}  // namespace oasr
