#include "cli/arguments.h"

#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <numeric>

#include "cli/inputs.h"
#include "oasr/outputs.h"

namespace oasr::cli {
namespace {

const Spelling* find_spelling(std::string_view option) {
  const auto all = spellings();
  const auto row = std::find_if(all.begin(), all.end(),
                                [&](const Spelling& s) { return s.given == option; });
  return row == all.end() ? nullptr : &*row;
}

const ValueSpelling* find_value_spelling(std::string_view option, std::string_view value) {
  const auto all = value_spellings();
  const auto row = std::find_if(all.begin(), all.end(), [&](const ValueSpelling& s) {
    return s.given == option && s.value == value;
  });
  return row == all.end() ? nullptr : &*row;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// True for "srt", "txt,json", "all"; everything else after -f is whisper.cpp's input file.
bool names_formats(const std::string& value) {
  std::size_t at = 0;
  while (at <= value.size()) {
    const auto end = std::min(value.find(',', at), value.size());
    const auto name = value.substr(at, end - at);
    if (name != "all" && !parse_output_format(name)) return false;
    at = end + 1;
  }
  return true;
}

bool is_file(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0;
}

bool takes_true_or_false(std::string_view option) {
  constexpr std::string_view kFlags[] = {
      "--word-timestamps", "--condition-on-previous-text", "--carry-initial-prompt",
      "--suppress-blank",  "--vad",                        "--no-timestamps",
      "--no-fallback",     "--translate",                  "--progress",
      "--verbose",         "--quiet"};
  return std::find(std::begin(kFlags), std::end(kFlags), option) != std::end(kFlags);
}

// Options whose empty value says something: no tokens, no text, no marks.
bool may_be_empty(std::string_view option) {
  constexpr std::string_view kOptions[] = {"--suppress-tokens", "--initial-prompt", "--prefix",
                                           "--prepend-punctuations", "--append-punctuations"};
  return std::find(std::begin(kOptions), std::end(kOptions), option) != std::end(kOptions);
}

// One argument after the other, with what was made of them.
class Translation {
 public:
  explicit Translation(const std::vector<std::string>& given) : given_(given) {}

  Result<std::vector<std::string>> run() {
    for (; at_ < given_.size(); ++at_) {
      const auto& word = given_[at_];
      if (word == "--") {
        made_.insert(made_.end(), given_.begin() + static_cast<std::ptrdiff_t>(at_), given_.end());
        break;
      }
      if (word.size() < 2 || word[0] != '-') {
        made_.push_back(word);
      } else if (auto done = option(word); !done) {
        return unexpected(done.error());
      }
    }
    return made_;
  }

 private:
  Status option(const std::string& word) {
    const auto equals = word.rfind("--", 0) == 0 ? word.find('=') : std::string::npos;
    auto name = word.substr(0, equals);
    const auto value = equals == std::string::npos ? std::string() : word.substr(equals);
    if (name.rfind("--", 0) == 0) std::replace(name.begin(), name.end(), '_', '-');
    if (const auto* spelling = find_spelling(name)) return spelled(*spelling, name, value);
    if (name == "-f" && input_follows()) {
      made_.push_back(given_[++at_]);
      return {};
    }
    add(name, value);
    return {};
  }

  Status spelled(const Spelling& spelling, const std::string& name, const std::string& value) {
    using enum Spelling::Kind;
    switch (spelling.kind) {
      case refused:
        if (served_value(name, value)) return {};
        return unexpected(ErrorCode::invalid_argument, std::string(spelling.becomes), name);
      case ignored: return {};
      case switches: add(std::string(spelling.becomes), value); return {};
      case rename:
        if (!spelling.becomes.empty()) {
          put(std::string(spelling.becomes), value);
        } else if (!value.empty()) {
          made_.push_back(value.substr(1));  // --file=NAME
        }                                    // --file NAME: NAME stays as an input
        return {};
    }
    return {};
  }

  // A refused option with one of the values that ask for what oasr does.
  bool served_value(const std::string& name, const std::string& value) {
    const bool attached = !value.empty();
    if (!attached && at_ + 1 == given_.size()) return false;
    const auto* row = find_value_spelling(name, lower(attached ? value.substr(1) : given_[at_ + 1]));
    if (row == nullptr) return false;
    if (!attached) ++at_;
    if (!row->becomes.empty()) made_.emplace_back(row->becomes);
    return true;
  }

  // The parser takes the word after "--name=" for its value, so an empty one becomes a word.
  void put(const std::string& name, const std::string& value) {
    made_.push_back(value == "=" ? name : name + value);
    if (value == "=") made_.emplace_back();
  }

  bool input_follows() const {
    return at_ + 1 < given_.size() && !names_formats(given_[at_ + 1]) && is_file(given_[at_ + 1]);
  }

  // A flag with Python's True or False behind it becomes the flag or its negation.
  void add(const std::string& name, const std::string& value) {
    if (!takes_true_or_false(name)) {
      put(name, value);
      return;
    }
    const bool attached = !value.empty();
    const auto next = attached                        ? lower(value.substr(1))
                      : at_ + 1 < given_.size() ? lower(given_[at_ + 1])
                                                      : std::string();
    if (next != "true" && next != "false") {
      made_.push_back(name + value);
      return;
    }
    if (!attached) ++at_;
    if (next == "true") {
      made_.push_back(name);
    } else if (name.rfind("--no-", 0) != 0) {
      made_.push_back("--no-" + name.substr(2));
    }
  }

  const std::vector<std::string>& given_;
  std::vector<std::string> made_;
  std::size_t at_ = 0;
};

// Letters to insert, delete, replace or swap.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), row(b.size() + 1), two_before;
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    two_before = std::exchange(before, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({before[j] + 1, row[j - 1] + 1, before[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], two_before[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

// "oasr bench kernels"
std::string full_name(const CLI::App& command) {
  const auto* above = command.get_parent();
  return above != nullptr ? full_name(*above) + " " + command.get_name() : command.get_name();
}

// The command that was being parsed: the innermost that was named.
const CLI::App& parsed_command(const CLI::App& app) {
  const auto within = app.get_subcommands();
  return within.empty() ? app : parsed_command(*within.front());
}

}  // namespace

Result<std::vector<std::string>> translate_arguments(const std::vector<std::string>& arguments) {
  return Translation(arguments).run();
}

std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates) {
  std::optional<std::string> best;
  std::size_t least = word.size() / 3 + 1;  // at most a third of the letters may differ
  for (const auto& candidate : candidates) {
    const auto distance = edit_distance(word, candidate);
    // A beginning counts as near: --word for --word-timestamps.
    const bool begins = word.size() >= 5 && candidate.rfind(word, 0) == 0;
    if (begins ? !best : distance < least) {
      best = candidate;
      least = begins ? least : distance;
    }
  }
  return best;
}

Status check_empty_arguments(const CLI::App& command, const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto& word = arguments[i];
    if (word.empty()) {
      return unexpected(ErrorCode::invalid_argument, "an argument is empty", "''",
                        "an unset variable of the shell?");
    }
    const bool attached = word.size() > 3 && word.rfind("--", 0) == 0 && word.back() == '=';
    const auto name = attached ? word.substr(0, word.size() - 1) : word;
    if (!attached && (i + 1 == arguments.size() || !arguments[i + 1].empty())) continue;
    const auto* option = word[0] == '-' ? command.get_option_no_throw(name) : nullptr;
    if (option == nullptr || option->get_items_expected_max() == 0) continue;
    if (!may_be_empty(name)) {
      return unexpected(ErrorCode::invalid_argument, "its value is empty", name,
                        "give a value, or leave the option out");
    }
    if (!attached) ++i;
  }
  return {};
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const auto* option : command.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
    for (const auto& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

Error parser_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = parsed_command(app);
  const auto name = full_name(command);
  if (&command == &app && dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    return {ErrorCode::invalid_argument, "no command is given", {}, name + " --help lists the commands"};
  }
  const auto remedy = name + " --help shows what it takes";
  const std::string text = error.what();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {  // "The following …: WORDS"
    const auto colon = text.find(": ");
    if (colon != std::string::npos) {
      return {ErrorCode::invalid_argument, "was not expected", text.substr(colon + 2), remedy};
    }
  }
  return {ErrorCode::invalid_argument, text, {}, remedy};
}

Status check_known_options(const CLI::App& command, const std::vector<std::string>& arguments) {
  const auto known = option_names(command);
  for (const auto& word : arguments) {
    if (word == "--") break;
    if (word.size() < 2 || word[0] != '-' || std::isdigit(static_cast<unsigned char>(word[1])) ||
        word[1] == '.') {
      continue;
    }
    if (is_audio_name(word)) {
      return unexpected(ErrorCode::invalid_argument, "looks like an option", word,
                        "if it is a file: ./" + word + ", or -- " + word);
    }
    const bool is_long = word[1] == '-';
    const auto name = is_long ? word.substr(0, word.find('=')) : word.substr(0, 2);
    if (command.get_option_no_throw(name) != nullptr && (is_long || word.size() == 2)) continue;
    if (!is_long && command.get_option_no_throw(name) != nullptr &&
        command.get_option_no_throw(name)->get_items_expected_max() > 0) {
      continue;  // -t4
    }
    const auto meant = nearest(is_long ? name : word, known);
    return unexpected(ErrorCode::invalid_argument, "unknown option", is_long ? name : word,
                      meant ? "did you mean " + *meant + "?"
                            : full_name(command) + " --help lists the options");
  }
  return {};
}

}  // namespace oasr::cli
