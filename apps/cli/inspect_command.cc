#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/messages.h"
#include "cli/terminal.h"
#include "oasr/inspect.h"

namespace oasr::cli {
namespace {

struct InspectArguments {
  std::string path, device = "cpu";
  bool json = false, tensors = false, checksums = false, quantization = false;
};

std::string joined(const std::vector<std::string>& words, std::string_view separator = " ") {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : std::string(separator)) + word;
  return text;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::string tensor_table(const ModelReport& report) {
  std::size_t width = 0;
  for (const auto& tensor : report.tensors) width = std::max(width, tensor.name.size());
  std::string text = "tensors\n";
  for (const auto& tensor : report.tensors) {
    text += fmt::format("  {:<{}} {:<8} {:<20} {:>12}\n", tensor.name, width, tensor.format,
                        shape_text(tensor.shape), tensor.bytes);
  }
  return text;
}

std::string as_text(const ModelReport& report, bool tensors) {
  std::string text;
  const auto row = [&](std::string_view name, const std::string& value) {
    text += fmt::format("{:<14} {}\n", name, value);
  };
  row("path", report.path);
  row("container", report.container);
  row("architecture", (report.architecture.empty() ? "unknown" : report.architecture) +
                          (report.size_name.empty() ? "" : " " + report.size_name));
  row("loads", report.loads ? "yes" : "no");
  row("parameters", fmt::format("{} in {} tensors", report.parameters, report.tensors.size()));
  for (const auto& [format, elements] : report.formats) {
    row("  " + format, fmt::format("{} elements", elements));
  }
  row("tokenizer", report.tokenizer);
  row("vocabulary", std::to_string(report.vocabulary_size));
  if (!report.languages.empty()) {
    row("languages", fmt::format("{}: {}", report.languages.size(), joined(report.languages)));
  }
  for (const auto& [name, value] : report.dimensions) row("  " + name, value);
  for (const auto& file : report.files) {
    row("file", file.path + " (" + megabytes(static_cast<double>(file.bytes)) + ")");
    if (!file.sha256.empty()) row("  sha256", file.sha256);
  }
  for (const auto& note : report.notes) row("note", note);
  if (!report.quantization_summary.empty()) text += "\n" + report.quantization_summary;
  return tensors ? text + tensor_table(report) : text;
}

int run_inspect(const InspectArguments& arguments) {
  Terminal terminal;
  const Messages messages(terminal);
  const auto report = inspect_model(
      arguments.path,
      {.checksums = arguments.checksums, .quantization = arguments.quantization, .device = arguments.device});
  if (!report) {
    terminal.error(report.error());
    return exit_code_of(report.error());
  }
  const auto text = arguments.json ? to_json(*report, arguments.tensors)
                                   : as_text(*report, arguments.tensors);
  if (!(arguments.json ? terminal.print(text) : terminal.print_text(text))) {
    terminal.error(terminal.output_error().error());
    return kError;
  }
  return report->loads ? kOk : kError;
}

}  // namespace

void add_inspect_command(CLI::App& app, Action& chosen) {
  auto arguments = std::make_shared<InspectArguments>();
  auto* command = app.add_subcommand("inspect", "Show what a checkpoint is");
  command->add_option("path", arguments->path, "Checkpoint, or a name of the catalogue in the cache")
      ->required()->type_name("PATH");
  command->add_flag("--json", arguments->json, "As JSON");
  command->add_flag("--tensors", arguments->tensors, "With the table of tensors");
  command->add_flag("--checksums", arguments->checksums, "With the SHA-256 of every file");
  command->add_flag("--quantization", arguments->quantization,
                    "With every layer's scheme, kernel and why it is left alone");
  command->add_option("--device", arguments->device, "Whose kernels that names: auto, cpu, cuda, cuda:N")
      ->capture_default_str();
  command->callback(
      [arguments, &chosen] { chosen = [arguments] { return run_inspect(*arguments); }; });
}

}  // namespace oasr::cli
