// oasr_config.json: what a native checkpoint says about itself. Internal to checkpoint.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "checkpoint/checksum.h"

namespace oasr {

inline constexpr const char* kNativeConfig = "oasr_config.json";
inline constexpr std::size_t kMaxNativeConfig = std::size_t{16} << 20;  // bytes

struct NativeConfig {
  std::string architecture;
  std::string source_container;
  std::map<std::string, std::string> source_facts;
  std::vector<std::string> notes;
  std::map<std::string, std::string> documents;
  // Of TokenizerSource; its texts and tokens are in files.
  std::string tokenizer_kind = "none";
  std::string tokenizer_origin;
  std::string tokenizer_pattern;
  Checksums tokenizer_files;
  std::string tensor_file = "model.safetensors";
  Checksums tensors;
  // A JSON object, compact, with keys in alphabetical order. Present: format version 2, else 1.
  std::optional<std::string> quantization;

  friend bool operator==(const NativeConfig&, const NativeConfig&) = default;
};

// Strict: every key is known and there, once, and of its type; documents and quantization are JSON
// objects; the kind of tokenizer is known. Names of files are not looked up here. Errors name the
// key; their location is empty.
Result<NativeConfig> parse_native_config(std::string_view text);

// The text that parse_native_config turns into `config` again; the same for equal configs.
// invalid_argument if there is none: texts that are not UTF-8, and all that the parser refuses.
Result<std::string> native_config_text(const NativeConfig& config);

}  // namespace oasr
