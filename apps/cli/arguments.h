// The command line before CLI11 sees it: spellings of other engines, and unknown options; and what it refuses.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "oasr/result.h"

namespace CLI {
class App;
class ParseError;
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

// A value of a refused option that asks for what oasr does: `becomes` takes the place of both, nothing
// if it is empty.
struct ValueSpelling {
  std::string_view given;    // "--compute-type"
  std::string_view value;    // "float16", lower case
  std::string_view becomes;  // "--dtype=float16"
};

// The tables (spellings.cc), for `oasr transcribe`.
std::span<const Spelling> spellings();
std::span<const ValueSpelling> value_spellings();

// Rewrites the arguments of `transcribe`: underscores in option names become dashes, the spellings
// of the table their oasr names, "--flag True|False" the flag or its negation, and whisper.cpp's
// `-f FILE` an input. An invalid_argument error for a refused spelling.
Result<std::vector<std::string>> translate_arguments(const std::vector<std::string>& arguments);

// An invalid_argument error for an empty word (an unset variable of the shell), unless it is the value
// of an option whose empty value says something.
Status check_empty_arguments(const CLI::App& command, const std::vector<std::string>& arguments);

// "--language", "-l", … of every option of `command`.
std::vector<std::string> option_names(const CLI::App& command);

// An invalid_argument error for the first option that `command` does not know, with the nearest
// known one as remedy. Files that begin with a dash are told so.
Status check_known_options(const CLI::App& command, const std::vector<std::string>& arguments);

// What CLI11 refuses, with where and what to do.
Error parser_error(const CLI::App& app, const CLI::ParseError& error);

// The candidate nearest to `word` if it is near enough to be meant.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace oasr::cli
