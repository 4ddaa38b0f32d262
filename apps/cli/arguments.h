// The command line before CLI11 sees it: spellings of other engines, and unknown options.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "oasr/result.h"

namespace CLI {
class App;
}

namespace oasr::cli {

// A spelling that users of openai-whisper, faster-whisper or whisper.cpp type.
struct Spelling {
  enum class Kind {
    rename,   // `becomes` takes its place, the value follows as it is
    switches, // no value: `becomes` takes its place
    ignored,  // a switch that asks for what oasr always does
    refused,  // an error with `becomes` as the reason
  };
  std::string_view given;    // "-bs"
  Kind kind;
  std::string_view becomes;  // "--beam-size", "--output-format=srt"
};

// The table (spellings.cc), for `oasr transcribe`.
std::span<const Spelling> spellings();

// Rewrites the arguments of `transcribe`: underscores in option names become dashes, the spellings
// of the table their oasr names, "--flag True|False" the flag or its negation, and whisper.cpp's
// `-f FILE` an input. An invalid_argument error for a refused spelling.
Result<std::vector<std::string>> translate_arguments(const std::vector<std::string>& arguments);

// An invalid_argument error for the first option that `command` does not know, with the nearest
// known one as remedy.
Status check_known_options(const CLI::App& command, const std::vector<std::string>& arguments);

// The candidate nearest to `word` if it is near enough to be meant.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace oasr::cli
