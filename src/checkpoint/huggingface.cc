// Hugging Face folder: config.json, safetensors (one file or shards) or a torch state dict, and the
// tokenizer's files.

#include <algorithm>
#include <array>

#include "base/json.h"
#include "checkpoint/containers.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/torch_archive.h"

namespace oasr {
namespace {

constexpr const char* kModelConfig = "config.json";
constexpr const char* kWeights = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
// State dicts of torch: of old repositories, and of tools that quantize; what a model was quantized by lies
// beside.
constexpr std::array kTorchWeights = {"pytorch_model.bin", "quant_model.pt", "model.pt"};
constexpr const char* kTorchScales = "scale.pt";

// A folder, or the weights file in it.
// Adds the tensors of a torch state dict.
Status add_torch_state(Checkpoint& checkpoint, const fs::path& path) {
  const FileBytes file = TRY(FileBytes::map(path));
  const auto add = [&]() -> Status {
    auto archive = TRY(TorchArchive::open(file));
    for (const auto& [name, id] : TRY(archive.items(archive.pickle().root(), "the state dict"))) {
      const StoredTensor tensor = TRY(archive.tensor(id, name));
      if (checkpoint.tensors.tensors.emplace(name, tensor).second) continue;
      return unexpected(ErrorCode::bad_checkpoint, "has the tensor '" + name + "' of another file again");
    }
    std::ranges::move(archive.owners(), std::back_inserter(checkpoint.tensors.owners));
    if (file.owner != nullptr) checkpoint.tensors.mapped.push_back(file.owner);
    return {};
  };
  checkpoint.files.push_back(path);
  return located(add(), file.where());
}

Status read_hf_weights(Checkpoint& checkpoint, const fs::path& folder) {
  if (path_exists(folder / kWeights)) {
    checkpoint.files.push_back(folder / kWeights);
    checkpoint.tensors = TRY(read_safetensors(TRY(FileBytes::map(folder / kWeights))));
    return {};
  }
  if (path_exists(folder / kIndex)) {
    checkpoint.files.push_back(folder / kIndex);
    checkpoint.tensors = TRY(read_safetensors_shards(folder / kIndex, checkpoint.files));
    return {};
  }
  const auto torch =
      std::ranges::find_if(kTorchWeights, [&](const char* name) { return path_exists(folder / name); });
  if (torch != kTorchWeights.end()) return add_torch_state(checkpoint, folder / *torch);
  return unexpected(ErrorCode::not_found, "has a config.json but no model.safetensors", folder.string(),
                    "take the safetensors file of the same repository, or save the model again");
}

Status read_hf_tokenizer(Checkpoint& checkpoint, const fs::path& folder) {
  auto& source = checkpoint.tokenizer;
  const auto read = [&](const char* name, std::string& text) -> Status {
    text = TRY(read_text_file(folder / name));
    checkpoint.files.push_back(folder / name);
    return {};
  };
  if (path_exists(folder / "tokenizer.json")) {
    source.kind = "tokenizer_json";
    source.origin = "tokenizer.json";
    return read("tokenizer.json", source.tokenizer_json);
  }
  if (!path_exists(folder / "vocab.json") || !path_exists(folder / "merges.txt")) {
    checkpoint.notes.push_back(
        "the folder has no tokenizer (tokenizer.json, or vocab.json and merges.txt)");
    return {};
  }
  source.kind = "vocab_merges";
  source.origin = "vocab.json + merges.txt";
  TRY(read("vocab.json", source.vocab_json));
  TRY(read("merges.txt", source.merges_txt));
  if (path_exists(folder / "added_tokens.json")) {
    TRY(read("added_tokens.json", source.added_tokens_json));
  }
  return {};
}

bool has_model_type(const fs::path& config) {
  const auto text = read_text_file(config);
  if (!text) return false;
  const auto json = parse_json(*text, config.string());
  return json && json->is_object() && json->contains("model_type");
}

}  // namespace

int detect_huggingface(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_regular_file(path, ignored)) {
    const auto name = path.filename();
    if (name == kIndex) return kByLayout;
    if (name != kWeights) return kNotThis;
    const auto head = first_bytes(path, 16);
    if (!looks_like_safetensors(std::as_bytes(std::span(head.data(), head.size())))) {
      return kNotThis;
    }
  }
  const auto folder = folder_of(path);
  if (path_exists(folder / kModelConfig) && has_model_type(folder / kModelConfig)) return kByContent;
  return path_exists(folder / kWeights) || path_exists(folder / kIndex) ? kByLayout : kNotThis;
}

Result<Checkpoint> read_huggingface(const fs::path& path) {
  const auto folder = folder_of(path);
  if (!path_exists(folder / kModelConfig)) {
    return unexpected(ErrorCode::not_found,
                      "has weights, but neither the oasr_config.json of an oasr folder nor the config.json of a "
                      "Hugging Face folder",
                      folder.string(), "copy the whole folder again, or put the file that belongs to the weights "
                                       "beside them");
  }
  Checkpoint checkpoint;
  checkpoint.container = "huggingface";
  checkpoint.path = path;
  for (const char* name : kHuggingFaceDocuments) TRY(add_document(checkpoint, folder, name));
  TRY(read_hf_weights(checkpoint, folder));
  if (path_exists(folder / kTorchScales)) TRY(add_torch_state(checkpoint, folder / kTorchScales));
  TRY(read_hf_tokenizer(checkpoint, folder));
  return checkpoint;
}

}  // namespace oasr
