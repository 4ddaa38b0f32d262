// What to transcribe: files, folders, manifests and standard input as one list.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "oasr/result.h"

namespace oasr::cli {

struct Input {
  std::string id;     // of a manifest; may be empty
  std::string audio;  // path to open, or "-"
  std::string stem;   // of output files, relative: "talks/monday" (may hold folders)

  // For messages and prefixes: the id, else the path.
  const std::string& name() const { return id.empty() ? audio : id; }
};

struct InputSpec {
  std::vector<std::string> paths;  // files, folders, "-"
  std::string manifest;            // JSON Lines: {"audio": …, "id": …}; paths relative to it
  bool recursive = false;          // folders: the audio files below them
};

// The list, in order: paths as given (a folder's files sorted), then the manifest. Files are not
// opened here: one that is missing fails when its turn comes. Errors: no input at all, a folder
// without --recursive, a manifest that is no file or can not be read to its end, a line of it that is not
// such an object or longer than 1 MiB, "-" twice, two inputs of one id.
Result<std::vector<Input>> collect_inputs(const InputSpec& spec);

// Part i of N: "2/8" keeps every eighth input from the second on.
struct Shard {
  std::size_t index = 1, count = 1;
};
Result<Shard> parse_shard(std::string_view text);
std::vector<Input> shard_of(const std::vector<Input>& inputs, Shard shard);

// True for names that end like an audio or video file.
bool is_audio_name(std::string_view name);

}  // namespace oasr::cli
