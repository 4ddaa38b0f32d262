#include "checkpoint/native_config.h"

#include "checkpoint/native.h"

#include <algorithm>
#include <array>
#include <initializer_list>

#include "base/json.h"
#include "checkpoint/safetensors.h"

namespace oasr {
namespace {

constexpr std::string_view kFormat = "oasr";
constexpr std::int64_t kFullPrecision = 1, kQuantized = 2;  // format versions
constexpr const char* kQuantization = "quantization";       // a key, and a document of the reader
constexpr std::array<std::string_view, 7> kTokenizerKinds = {
    "none", "tokenizer_json", "vocab_merges", "ranks", "vocabulary", "units", "sentencepiece"};

Unexpected bad_config(std::string what) {
  return unexpected(ErrorCode::bad_checkpoint, std::move(what), {},
                    "download or copy the folder again, or convert the source again");
}

// An object with these keys and no others. `name` is the object's own key, for errors.
Status check_keys(const Json& json, const std::string& name,
                  std::initializer_list<std::string_view> keys) {
  if (!json.is_object()) return bad_config(name + " is not a JSON object");
  for (const auto key : keys) {
    if (!json.contains(key)) return bad_config(name + " has no \"" + std::string(key) + "\"");
  }
  for (const auto& [key, value] : json.items()) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      return bad_config(name + " has the unknown key \"" + key + "\"");
    }
  }
  return {};
}

Result<std::string> text_at(const Json& object, const char* key) {
  const auto& value = object.at(key);
  if (!value.is_string()) return bad_config("\"" + std::string(key) + "\" is not a text");
  return value.get<std::string>();
}

Result<std::string> word_at(const Json& object, const char* key) {
  auto text = TRY(text_at(object, key));
  if (text.empty()) return bad_config("\"" + std::string(key) + "\" is empty");
  return text;
}

Result<std::map<std::string, std::string>> texts_at(const Json& object, const char* key) {
  const auto& texts = object.at(key);
  if (!texts.is_object()) return bad_config("\"" + std::string(key) + "\" is not a JSON object");
  std::map<std::string, std::string> out;
  for (const auto& [name, text] : texts.items()) {
    if (!text.is_string()) return bad_config("\"" + name + "\" of \"" + key + "\" is not a text");
    out.emplace(name, text.get<std::string>());
  }
  return out;
}

Result<Checksums> checksums_at(const Json& object, const char* key) {
  Checksums out;
  for (const auto& [name, text] : TRY(texts_at(object, key))) {
    const auto checksum = parse_checksum(text);
    if (!checksum) {
      return bad_config("\"" + name + "\" has \"" + text + "\" as its checksum, not crc32:xxxxxxxx");
    }
    out.emplace(name, *checksum);
  }
  return out;
}

Status check_document(const std::string& name, const std::string& text) {
  const auto json = parse_json(text, {});
  if (!json || !json->is_object()) return bad_config("the document \"" + name + "\" is no JSON object");
  if (name == kQuantization) return bad_config("\"quantization\" must not be among the documents");
  return {};
}

Result<std::int64_t> read_version(const Json& json) {
  if (!json.contains("format_version") || !json["format_version"].is_number_integer()) {
    return bad_config("\"format_version\" is not a whole number");
  }
  const auto& version = json["format_version"];
  if (version != kFullPrecision && version != kQuantized) {
    return unexpected(ErrorCode::unsupported,
                      "is format version " + version.dump() + "; this oasr reads 1 and 2", {},
                      "use a newer oasr, or convert the source again with this one");
  }
  return version.get<std::int64_t>();
}

Status read_source(const Json& json, NativeConfig& config) {
  TRY(check_keys(json, "\"source\"", {"container", "facts", "notes"}));
  config.source_container = TRY(word_at(json, "container"));
  config.source_facts = TRY(texts_at(json, "facts"));
  if (!json["notes"].is_array()) return bad_config("\"notes\" is not a list");
  for (const auto& note : json["notes"]) {
    if (!note.is_string()) return bad_config("\"notes\" is not a list of texts");
    config.notes.push_back(note.get<std::string>());
  }
  return {};
}

Status read_tokenizer(const Json& json, NativeConfig& config) {
  TRY(check_keys(json, "\"tokenizer\"", {"kind", "origin", "pattern", "files"}));
  config.tokenizer_kind = TRY(text_at(json, "kind"));
  if (std::find(kTokenizerKinds.begin(), kTokenizerKinds.end(), config.tokenizer_kind) ==
      kTokenizerKinds.end()) {
    return bad_config("\"" + config.tokenizer_kind + "\" is no kind of tokenizer");
  }
  config.tokenizer_origin = TRY(text_at(json, "origin"));
  config.tokenizer_pattern = TRY(text_at(json, "pattern"));
  config.tokenizer_files = TRY(checksums_at(json, "files"));
  return {};
}

Status read_tensors(const Json& json, NativeConfig& config) {
  TRY(check_keys(json, "\"tensors\"", {"file", "checksums"}));
  config.tensor_file = TRY(text_at(json, "file"));
  if (!is_safetensors_file_name(config.tensor_file)) {
    return bad_config("\"" + config.tensor_file + "\" is not a plain .safetensors file name");
  }
  config.tensors = TRY(checksums_at(json, "checksums"));
  return {};
}

Result<Json> parse_strictly(std::string_view text) {
  if (text.size() > kMaxNativeConfig) return bad_config("is larger than 16 MiB");
  auto json = TRY(parse_json(text, {}));
  if (has_duplicate_keys(text)) return bad_config("has a key twice in one object");
  if (!json.is_object() || json.value("format", Json()) != Json(kFormat)) {
    return bad_config("does not say \"format\": \"oasr\"");
  }
  return json;
}

}  // namespace

Result<NativeConfig> parse_native_config(std::string_view text) {
  const auto json = TRY(parse_strictly(text));
  const auto version = TRY(read_version(json));
  if (json.contains(kQuantization) != (version == kQuantized)) {
    return bad_config(version == kQuantized ? "is format version 2 (quantized) without a \"quantization\""
                                     : "is format version 1 (full precision) and has a "
                                       "\"quantization\", which is version 2");
  }
  NativeConfig config;
  if (version == kQuantized) {
    if (!json[kQuantization].is_object()) return bad_config("\"quantization\" is not a JSON object");
    config.quantization = json[kQuantization].dump();
    TRY(check_keys(json, "the file",
                   {"format", "format_version", "architecture", "source", "documents", "tokenizer",
                    "tensors", kQuantization}));
  } else {
    TRY(check_keys(json, "the file",
                   {"format", "format_version", "architecture", "source", "documents", "tokenizer",
                    "tensors"}));
  }
  config.architecture = TRY(word_at(json, "architecture"));
  TRY(read_source(json["source"], config));
  config.documents = TRY(texts_at(json, "documents"));
  for (const auto& [name, document] : config.documents) TRY(check_document(name, document));
  TRY(read_tokenizer(json["tokenizer"], config));
  TRY(read_tensors(json["tensors"], config));
  return config;
}

Result<std::string> native_config_text(const NativeConfig& config) {
  const auto texts = [](const Checksums& checksums) {
    std::map<std::string, std::string> out;
    for (const auto& [name, checksum] : checksums) out.emplace(name, checksum_text(checksum));
    return out;
  };
  OrderedJson json;
  json["format"] = kFormat;
  json["format_version"] = config.quantization ? kQuantized : kFullPrecision;
  json["architecture"] = config.architecture;
  json["source"] = {{"container", config.source_container},
                    {"facts", config.source_facts},
                    {"notes", config.notes}};
  json["documents"] = config.documents;
  json["tokenizer"] = {{"kind", config.tokenizer_kind},
                       {"origin", config.tokenizer_origin},
                       {"pattern", config.tokenizer_pattern},
                       {"files", texts(config.tokenizer_files)}};
  if (config.quantization) json[kQuantization] = TRY(parse_json(*config.quantization, {}));
  json["tensors"] = {{"file", config.tensor_file}, {"checksums", texts(config.tensors)}};
  auto text = dump_json(json, 2) + "\n";
  // What the reader refuses, or reads as something else, is not written.
  auto parsed = parse_native_config(text);
  if (!parsed) {
    return unexpected(ErrorCode::invalid_argument, parsed.error().what, {}, {});
  }
  if (*parsed != config) {
    return unexpected(ErrorCode::invalid_argument, "a text of the checkpoint is not UTF-8");
  }
  return text;
}

bool names_native_format(std::string_view text) {
  const auto json = parse_json(text, {});
  return json && json->is_object() && json->value("format", Json()) == Json(kFormat);
}

}  // namespace oasr
