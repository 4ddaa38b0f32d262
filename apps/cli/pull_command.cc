#include "cli/pull_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/signals.h"

namespace oasr::cli {
namespace {

struct PullArguments {
  std::string name, source;
  bool list = false, verify = false, quiet = false, json = false;
};

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string list_as_text() {
  std::string text = fmt::format("{:<16} {:>10}  {:<12} {:>8}  {:<7} {}\n", "name", "parameters",
                                 "languages", "download", "cached", "sources");
  for (const auto& model : catalogue()) {
    auto name = model.name;
    if (model.name == default_model()) name += " *";
    text += fmt::format("{:<16} {:>8} M  {:<12} {:>5} MB  {:<7} {}{}\n", name,
                        model.parameters_millions, model.multilingual ? "multilingual" : "English",
                        model.download_mb, model.cached ? "yes" : "no", joined(model.sources),
                        model.aliases.empty() ? "" : "  (also: " + joined(model.aliases) + ")");
  }
  return text + "\n* the default of `oasr transcribe`. Cache: " + cache_folder() + "\n";
}

std::string list_as_json() {
  auto rows = nlohmann::ordered_json::array();
  for (const auto& model : catalogue()) {
    rows.push_back({{"name", model.name},
                    {"aliases", model.aliases},
                    {"parameters_millions", model.parameters_millions},
                    {"multilingual", model.multilingual},
                    {"download_mb", model.download_mb},
                    {"sources", model.sources},
                    {"cached", model.cached},
                    {"path", model.path}});
  }
  return rows.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

int run_pull(const PullArguments& arguments) {
  Terminal terminal(arguments.quiet ? Verbosity::quiet : Verbosity::normal);
  if (arguments.list) {
    return terminal.print(arguments.json ? list_as_json() : list_as_text()) ? kOk : kError;
  }
  PullOptions options;
  options.source = arguments.source;
  options.verify = arguments.verify;
  const auto name = arguments.name.empty() ? default_model() : arguments.name;
  const auto path = pull_with_progress(name, terminal, options);
  if (!path) {
    terminal.error(path.error());
    return exit_code_of(path.error());
  }
  return terminal.print_text(*path + "\n") ? kOk : kError;
}

}  // namespace

Result<std::string> pull_with_progress(const std::string& name, Terminal& terminal,
                                       PullOptions options) {
  options.notice = [&](std::string_view line) { terminal.note(name + ": " + std::string(line)); };
  options.progress = [&](const PullProgress& progress) {
    terminal.progress(progress.file, static_cast<double>(progress.bytes_done) / 1e6,
                      static_cast<double>(progress.bytes_total) / 1e6, "MB");
  };
  options.cancelled = interrupted;
  auto path = pull_model(name, options);
  terminal.clear_progress();
  return path;
}

void add_pull_command(CLI::App& app, Action& chosen) {
  auto arguments = std::make_shared<PullArguments>();
  auto* command = app.add_subcommand("pull", "Download a model of the catalogue into the cache");
  command->add_option("name", arguments->name, "Model; default: " + default_model())
      ->type_name("NAME");
  command->add_flag("--list", arguments->list, "List the catalogue and what is cached");
  command->add_option("--source", arguments->source,
                      "Only this source (openai, huggingface, packages), not each in turn");
  command->add_flag("--verify", arguments->verify,
                    "Compute the digests of a cached model again; pull it if one is wrong");
  command->add_flag("--json", arguments->json, "With --list: as JSON");
  command->add_flag("-q,--quiet", arguments->quiet, "No messages but errors");
  command->callback([arguments, &chosen] { chosen = [arguments] { return run_pull(*arguments); }; });
}

}  // namespace oasr::cli
