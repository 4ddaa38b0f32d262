#include "checkpoint/huggingface_writer.h"

#include "base/fs.h"
#include "checkpoint/containers.h"
#include "checkpoint/native_files.h"

namespace oasr {
namespace {

Status write_files(const fs::path& folder, const NativeContent& content, const TensorDocument& about,
                   const WriteProgress& progress) {
  const Checksums tensors = TRY(write_safetensors(folder / kNativeWeights, content.tensors, progress));
  TRY(write_text_file(folder / about.name, about.text(tensors)));
  for (const char* name : kHuggingFaceDocuments) {
    const auto document = content.documents.find(name);
    if (document != content.documents.end()) TRY(write_text_file(folder / name, document->second));
  }
  for (const TokenizerText& row : kTokenizerTexts) {
    const std::string& text = content.tokenizer.*row.text;
    if (!text.empty()) TRY(write_text_file(folder / row.name, text));
  }
  return {};
}

}  // namespace

Status write_huggingface(const fs::path& path, const NativeContent& content, const TensorDocument& about,
                         const WriteProgress& progress) {
  const std::string& tokenizer = content.tokenizer.kind;
  if (content.source_container != "huggingface" || !content.documents.contains("config.json") ||
      (tokenizer != "tokenizer_json" && tokenizer != "vocab_merges")) {
    return unexpected(
        ErrorCode::unsupported,
        "the model has no configuration and tokenizer of a Hugging Face folder: it was made from " +
            content.source_container,
        path.string(), "convert the Hugging Face folder of the model");
  }
  auto folder = TRY(AtomicFolder::create(path));
  if (auto written = write_files(folder.temporary(), content, about, progress); !written) {
    auto error = std::move(written).error();
    if (error.code == ErrorCode::io || error.where.empty()) error.where = path.string();
    return unexpected(std::move(error));
  }
  return folder.commit();
}

}  // namespace oasr
