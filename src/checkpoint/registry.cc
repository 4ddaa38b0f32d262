#include <algorithm>
#include <array>
#include <fstream>

#include "base/json.h"
#include "checkpoint/containers.h"

namespace oasr {
namespace {

// The first of equally sure rows wins: oasr_config.json says more than a config.json beside it.
constexpr std::array kReaders = {
    ContainerReader{.name = "native",
                    .what = "an oasr folder (oasr_config.json and model.safetensors)",
                    .detect = detect_native,
                    .read = read_native},
    ContainerReader{.name = "huggingface",
                    .what = "a Hugging Face folder (config.json and model.safetensors)",
                    .detect = detect_huggingface,
                    .read = read_huggingface},
    ContainerReader{.name = "ctranslate2",
                    .what = "a faster-whisper (CTranslate2) folder with model.bin",
                    .detect = detect_ctranslate2,
                    .read = read_ctranslate2},
    ContainerReader{.name = "wenet",
                    .what = "a WeNet folder (train.yaml, final.pt and units.txt)",
                    .detect = detect_wenet,
                    .read = read_wenet},
    ContainerReader{.name = "openai",
                    .what = "OpenAI's .pt file",
                    .detect = detect_openai,
                    .read = read_openai},
    ContainerReader{.name = "ggml",
                    .what = "whisper.cpp's ggml-*.bin",
                    .detect = detect_ggml,
                    .read = read_ggml},
};

std::string readable() {
  std::string text;
  for (const auto& reader : kReaders) {
    if (!text.empty()) text += &reader == &kReaders.back() ? " or " : ", ";
    text += reader.what;
  }
  return text;
}

}  // namespace

std::span<const ContainerReader> container_readers() { return kReaders; }

Result<Checkpoint> open_checkpoint(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    return unexpected(ErrorCode::not_found, error ? error.message() : "no such file or folder",
                      path.string());
  }
  const ContainerReader* best = nullptr;
  int sure = kNotThis;
  for (const auto& reader : kReaders) {
    if (const int found = reader.detect(path); found > sure) {
      sure = found;
      best = &reader;
    }
  }
  if (best != nullptr) return best->read(path);
  return unexpected(ErrorCode::unsupported,
                    "is " + describe_path(path) + ", not a checkpoint that is read", path.string(),
                    "give " + readable());
}

std::string dims_json(const Dims& dims) {
  OrderedJson json = OrderedJson::object();
  for (std::size_t i = 0; i < dims.size(); ++i) json[std::string(kDimNames[i])] = dims[i];
  return dump_json(json);
}

bool path_exists(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

fs::path folder_of(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored) ? path : path.parent_path();
}

std::string first_bytes(const fs::path& path, std::size_t size) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return {};  // never read from a pipe or a device
  std::ifstream file(path, std::ios::binary);
  std::string text(size, '\0');
  file.read(text.data(), static_cast<std::streamsize>(size));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return text;
}

Status add_document(Checkpoint& checkpoint, const fs::path& folder, const std::string& name) {
  const auto path = folder / name;
  if (!path_exists(path)) return {};
  auto text = TRY(read_text_file(path));
  if (!TRY(parse_json(text, path.string())).is_object()) {
    return unexpected(ErrorCode::bad_checkpoint, "is not a JSON object", path.string());
  }
  checkpoint.documents[name] = std::move(text);
  checkpoint.files.push_back(path);
  return {};
}

}  // namespace oasr
