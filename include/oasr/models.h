// The model catalogue, the cache folder, and how a model gets into it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "oasr/result.h"

namespace oasr {

// A row of the catalogue.
struct CatalogueModel {
  std::string name;                  // "large-v3-turbo"
  std::vector<std::string> aliases;  // "turbo"
  int parameters_millions = 0;
  bool multilingual = false;
  int download_mb = 0;               // of the smallest source, 10^6 bytes, rounded
  std::vector<std::string> sources;  // in the order that they are tried: "openai", "huggingface", …
  bool cached = false;               // complete in the cache
  std::string path;                  // of the cached checkpoint; empty if not cached
};

// Every model that `pull_model` knows, smallest first.
std::vector<CatalogueModel> catalogue();

// The model of `oasr transcribe` without --model.
std::string default_model();

// OASR_CACHE_DIR, else $XDG_CACHE_HOME/oasr, else ~/.cache/oasr. Not created by this call.
std::string cache_folder();

struct PullProgress {
  std::string_view source;         // "openai"
  std::string_view file;           // "base.pt"
  std::uint64_t bytes_done = 0;    // of this file, those of an earlier attempt included
  std::uint64_t bytes_total = 0;   // 0: not known
};

struct PullOptions {
  std::string source;              // one of the model's sources; empty: each in turn
  bool verify = false;             // of a cached model: compute the digests again
  std::function<void(const PullProgress&)> progress;
  std::function<void(std::string_view line)> notice;  // what is tried, why it failed
  std::function<bool()> cancelled;                    // polled; true stops, the part stays for later
};

// Downloads a model of the catalogue into the cache, verifies every digest, and places it there in
// one step; a partial download is resumed. Returns the path of the checkpoint, at once when the
// cache has it. Safe when several processes pull the same model. Errors: not_found (no such
// model), network (every source failed: the message lists what was tried), io, cancelled.
Result<std::string> pull_model(std::string_view name, const PullOptions& options = {});

// What `name_or_path` stands for: a name of the catalogue in the cache gives the cached
// checkpoint's path, everything else is a path that must exist. A name wins over a path; "./base"
// is always a path. A catalogue name that is not cached is not_found with `oasr pull` as remedy.
Result<std::string> resolve_model(std::string_view name_or_path);

// True if `name` is a name or alias of the catalogue.
bool in_catalogue(std::string_view name);

}  // namespace oasr
