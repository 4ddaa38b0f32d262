// What a path that is no checkpoint is instead: from its content, never from its name alone.

#include <algorithm>
#include <array>
#include <cctype>

#include "checkpoint/containers.h"
#include "checkpoint/safetensors.h"

namespace oasr {
namespace {

struct Magic {
  std::size_t offset;
  std::string_view bytes;
  std::string_view what;
};
constexpr std::array kMagics = {
    Magic{0, "GGUF", "a GGUF file"},
    Magic{0, "tjgg", "a GGJT file (an older llama.cpp format)"},
    Magic{0, "PK\3\4", "a zip archive"},
    Magic{0, "\x1f\x8b", "a gzip file"},
    Magic{0, "BZh", "a bzip2 file"},
    Magic{0,
          "\xFD"
          "7zXZ",
          "an xz file"},
    Magic{0, "\x28\xB5\x2F\xFD", "a Zstandard file"},
    Magic{257, "ustar", "a tar archive (a NeMo model?)"},
    Magic{0, "\x89HDF", "an HDF5 file (a Keras model?)"},
    Magic{4, "TFL3", "a TensorFlow Lite model"},
    Magic{0, "\x93NUMPY", "a NumPy array"},
    Magic{0, "RIFF", "an audio file (RIFF)"},
    Magic{0, "fLaC", "an audio file (FLAC)"},
    Magic{0, "OggS", "an audio file (Ogg)"},
    Magic{0, "ID3", "an audio file (MP3)"},
    Magic{4, "ftyp", "an audio or video file (MP4)"},
    Magic{0, "%PDF", "a PDF document"},
    Magic{0,
          "\x7F"
          "ELF",
          "a program"},
    Magic{0, "version https://git-lfs", "a Git LFS pointer, not the file that it stands for"},
    Magic{0, "<!DOCTYPE", "a web page"},
    Magic{0, "<html", "a web page"},
};

struct TorchKind {
  std::string_view key;  // the beginning of a key at the top level
  std::string_view what;
};
// The first row that fits counts: ESPnet's and FunASR's names are otherwise much like WeNet's.
constexpr std::array kTorchKinds = {
    TorchKind{"frontend.", "an ESPnet checkpoint"},
    TorchKind{"normalize.", "an ESPnet checkpoint"},
    TorchKind{"encoder.encoders0.", "a FunASR checkpoint"},
    TorchKind{"encoder.global_cmvn", "a WeNet checkpoint"},
    TorchKind{"encoder.encoders.", "a WeNet checkpoint"},
    TorchKind{"ctc.ctc_lo", "a WeNet checkpoint"},
    TorchKind{"model.encoder.", "a Hugging Face pytorch_model.bin"},
    TorchKind{"encoder.pre_encode", "the weights of a NeMo model"},
    TorchKind{"encoder_embed.", "an icefall checkpoint"},
    TorchKind{"pytorch-lightning_version", "a Lightning training checkpoint"},
    TorchKind{"model_avg", "an icefall training checkpoint"},
    TorchKind{"model_state_dict", "an OpenAI Whisper checkpoint"},
    TorchKind{"optimizer", "a training checkpoint"},
    TorchKind{"model", "a checkpoint of icefall's kind"},
};

bool is_text(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 ? byte != 0x7F : byte == '\n' || byte == '\r' || byte == '\t';
  });
}

// ONNX is a protobuf: field 1 (ir_version, a small number), then the producer's name or the graph.
bool looks_like_onnx(std::string_view head) {
  return head.size() > 2 && head[0] == 0x08 && head[1] > 0 && head[1] < 0x20 &&
         (head[2] == 0x12 || head[2] == 0x3A);
}

std::string describe_file(const fs::path& path) {
  const auto head = first_bytes(path, 512);
  if (head.empty()) return "an empty file";
  for (const auto& magic : kMagics) {
    if (std::string_view(head)
            .substr(std::min(magic.offset, head.size()))
            .starts_with(magic.bytes)) {
      return std::string(magic.what);
    }
  }
  if (looks_like_safetensors(std::as_bytes(std::span(head.data(), head.size())))) {
    return "a safetensors file that is not called model.safetensors";
  }
  if (looks_like_onnx(head)) return "an ONNX model";
  if (is_text(head)) return "a text file";
  return "a file of an unknown kind";
}

struct Landmark {
  std::string_view name;
  std::string_view what;
};
constexpr std::array kLandmarks = {
    Landmark{"oasr_config.json", "a folder with a broken oasr_config.json"},
    Landmark{"train.yaml", "a WeNet folder"},
    Landmark{"final.pt", "a WeNet folder"},
    Landmark{"config.yaml", "a FunASR folder"},
    Landmark{"model_config.yaml", "an unpacked NeMo model"},
    Landmark{"pytorch_model.bin", "a folder with pytorch_model.bin but no config.json"},
    Landmark{"adapter_config.json", "a folder with an adapter, not a whole model"},
    Landmark{"config.json", "a folder with a config.json of another kind and no weights"},
    Landmark{"encoder.onnx", "a folder with ONNX models"},
};

std::string describe_folder(const fs::path& path) {
  std::error_code error;
  for (const auto& landmark : kLandmarks) {
    if (fs::exists(path / landmark.name, error)) return std::string(landmark.what);
  }
  std::string inside;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    const auto extension = it->path().extension();
    if (extension == ".pt" || extension == ".bin" || extension == ".safetensors") {
      inside = " with " + it->path().filename().string() + " (give that file itself)";
    }
    if (extension == ".onnx") return "a folder with ONNX models";
  }
  if (error) return "a folder that can not be read";
  return (fs::is_empty(path, error) ? "an empty folder"
                                    : "a folder without config.json or model.bin") +
         inside;
}

}  // namespace

std::string describe_path(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return describe_folder(path);
  if (!fs::is_regular_file(path, error)) return "neither a file nor a folder";
  return describe_file(path);
}

std::string_view torch_kind(std::span<const std::string> keys) {
  for (const auto& kind : kTorchKinds) {
    if (std::any_of(keys.begin(), keys.end(), [&](const auto& key) { return key.starts_with(kind.key); })) {
      return kind.what;
    }
  }
  return {};
}

}  // namespace oasr
