// `oasr`: speech recognition on the command line.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <sstream>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/model_options.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "oasr/version.h"

namespace oasr::cli {
namespace {

using Arguments = std::vector<std::string>;

int usage_error(const Error& error) {
  Terminal().error(error);
  return kUsage;
}

void add_commands(CLI::App& app, Action& chosen) {
  app.set_help_all_flag();
  app.set_version_flag("-V,--version", std::string("oasr ") + version());
  app.require_subcommand(1);
  app.footer("oasr COMMAND --help describes a command. Exit statuses: docs/cli.md.");
  add_transcribe_command(app, chosen);
  add_pull_command(app, chosen);
  add_inspect_command(app, chosen);
  add_doctor_command(app, chosen);
  add_bench_command(app, chosen);
  add_convert_command(app, chosen);
  add_quantize_command(app, chosen);
  add_eval_command(app, chosen);
  auto* version_command = app.add_subcommand("version", "Print the version");
  version_command->callback([&chosen] {
    chosen = []() -> int {
      Terminal terminal;
      return terminal.print(std::string("oasr ") + version() + "\n") ? kOk : kError;
    };
  });
}

// The subcommand called `name`, or null.
const CLI::App* find_command(const CLI::App& app, const std::string& name) {
  for (const auto* command : app.get_subcommands(nullptr)) {
    if (command->get_name() == name) return command;
  }
  return nullptr;
}

// An unknown command with the nearest known one.
Status check_command(const CLI::App& app, const std::string& word) {
  if (find_command(app, word) != nullptr) return {};
  if (!word.empty() && word[0] == '-') {
    if (app.get_option_no_throw(word) != nullptr) return {};
    const auto meant = nearest(word, option_names(app));
    return unexpected(ErrorCode::invalid_argument, "is not an option of oasr itself", word,
                      meant ? "did you mean " + *meant + "?"
                            : "options come after the command, as in: oasr transcribe");
  }
  std::vector<std::string> names;
  for (const auto* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  const auto meant = nearest(word, names);
  return unexpected(ErrorCode::invalid_argument, "is not a command", word.empty() ? "''" : word,
                    "did you mean: oasr " + (meant ? *meant : "transcribe " + word) + "?");
}

// CLI11 takes the arguments from the last to the first.
int parse(CLI::App& app, Arguments arguments) {
  std::reverse(arguments.begin(), arguments.end());
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    const bool asked = app.exit(error, out, err) == 0;  // --help and --version are "errors" too
    if (!asked) return usage_error(parser_error(app, error));
    Terminal terminal;
    if (terminal.print(out.str())) return kOk;
    terminal.error(terminal.output_error().error());
    return kError;
  }
  return -1;
}

// The words after the program's name; under the name oasr-convert they are those of `oasr convert`.
Arguments words_of(int argc, char** argv) {
  Arguments words;
  if (argc == 0) return words;
  if (std::filesystem::path(argv[0]).filename() == "oasr-convert") words.emplace_back("convert");
  words.insert(words.end(), argv + 1, argv + argc);
  return words;
}

int run(Arguments arguments) {
  CLI::App app("Speech recognition: audio in, text out.", "oasr");
  Action chosen;
  add_commands(app, chosen);
  if (!arguments.empty()) {
    if (auto known = check_command(app, arguments[0]); !known) return usage_error(known.error());
    if (const auto* command = find_command(app, arguments[0])) {
      std::ptrdiff_t words = 1;  // of the command's name
      if (const auto* within = arguments.size() > 1 ? find_command(*command, arguments[1]) : nullptr) {
        command = within;
        words = 2;
      }
      const Arguments rest = spread_quantization_options({arguments.begin() + words, arguments.end()});
      auto translated = command->get_name() == "transcribe" ? translate_arguments(rest)
                                                            : Result<Arguments>(rest);
      if (!translated) return usage_error(translated.error());
      if (auto good = check_empty_arguments(*command, *translated); !good) {
        return usage_error(good.error());
      }
      if (auto known = check_known_options(*command, *translated); !known) {
        return usage_error(known.error());
      }
      arguments.resize(static_cast<std::size_t>(words));
      arguments.insert(arguments.end(), translated->begin(), translated->end());
    }
  }
  if (const int status = parse(app, std::move(arguments)); status >= 0) return status;
  return chosen();
}

}  // namespace
}  // namespace oasr::cli

int main(int argc, char** argv) {
  oasr::cli::keep_standard_files_apart();
  oasr::cli::install_signal_handlers();
  try {
    return oasr::cli::run(oasr::cli::words_of(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "oasr: error: %s (this is a bug in oasr: report it)\n", error.what());
    return oasr::cli::kError;
  }
}
