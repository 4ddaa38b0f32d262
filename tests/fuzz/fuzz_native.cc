// Fuzzes native checkpoints. The first byte says what the rest is: 'c' oasr_config.json beside
// fixed files, 's' model.safetensors under a configuration that fits it, 't' tokens.txt. What is
// accepted decodes inside its bytes, and is written as it was read.
#include <cstdlib>
#include <vector>

#include "checkpoint/native.h"
#include "checkpoint/native_config.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/token_lines.h"

namespace {

using namespace oasr;

constexpr std::string_view kTokens = "a\n";
const std::string kHeader = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
const std::string kWeights =
    std::string({static_cast<char>(kHeader.size()), 0, 0, 0, 0, 0, 0, 0}) + kHeader + "1234";

void require(bool condition) {
  if (!condition) std::abort();
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

void read(std::string_view config, std::string_view weights) {
  const auto open = [&](const std::string& name) -> Result<FileBytes> {
    const bool tensors = name.ends_with(".safetensors");
    const auto text = name == kNativeConfig ? config : tensors ? weights : kTokens;
    return FileBytes{name, bytes_of(text), nullptr};
  };
  const auto checkpoint = read_native_parts(open);
  if (!checkpoint) return;
  for (const auto& [name, tensor] : checkpoint->tensors.tensors) {
    std::vector<float> values(static_cast<std::size_t>(tensor.shape.elements()));
    (void)decode_to_float(tensor, values);
  }
}

void fuzz_config(std::string_view text) {
  read(text, kWeights);
  if (const auto config = parse_native_config(text)) {
    const auto written = native_config_text(*config);
    // Pretty-printing may make a text that is nearly too large too large.
    if (!written) return require(text.size() > kMaxNativeConfig / 128);
    const auto again = parse_native_config(*written);
    require(again && *again == *config);
  }
}

void fuzz_weights(std::string_view weights) {
  const auto dict = read_safetensors({"model.safetensors", bytes_of(weights), nullptr});
  NativeConfig config;
  config.architecture = "a";
  config.source_container = "b";
  if (dict) {
    for (const auto& [name, tensor] : dict->tensors) {
      config.tensors.emplace(
          name, crc32_of(tensor.bytes, begin_tensor_checksum(tensor.format, tensor.shape)));
    }
  }
  if (const auto text = native_config_text(config)) read(*text, weights);
}

void fuzz_tokens(std::string_view text) {
  if (const auto tokens = read_token_lines(text)) require(write_token_lines(*tokens) == text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (input.empty()) return 0;
  const auto rest = input.substr(1);
  if (input[0] == 'c') fuzz_config(rest);
  if (input[0] == 's') fuzz_weights(rest);
  if (input[0] == 't') fuzz_tokens(rest);
  return 0;
}
