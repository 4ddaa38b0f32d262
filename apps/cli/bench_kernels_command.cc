#include <CLI/CLI.hpp>
#include <ctime>
#include <filesystem>
#include <memory>

#include "cli/command.h"
#include "cli/commit.h"
#include "cli/exit_codes.h"
#include "cli/kernel_report.h"
#include "cli/kernel_shapes.h"
#include "cli/messages.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "oasr/outputs.h"

namespace oasr::cli {
namespace {

namespace fs = std::filesystem;

struct KernelsArguments {
  KernelBenchOptions bench;
  std::string shapes, output;
  bool json = false;
};

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[sizeof "2026-12-02T00:00:00Z"];
  return std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts) > 0 ? text : "";
}

// The report's own name in a folder that is there, or the file.
std::string output_path(const std::string& output, const KernelBenchReport& report) {
  return fs::is_directory(output) ? (fs::path(output) / kernel_report_name(report)).string() : output;
}

// Told before anything is measured. A name of another kind is likely to be that of a folder to come.
Status check_output(const std::string& output) {
  std::error_code failed;
  if (output.empty() || fs::is_directory(output, failed)) return {};
  const fs::path path(output);
  if (path.extension() != ".json") {
    return unexpected(ErrorCode::invalid_argument, "'" + output + "' is no folder that is there, and no name of a JSON file",
                      "--output", "make the folder first, or name a file that ends in .json");
  }
  const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  if (fs::is_directory(folder, failed)) return {};
  return unexpected(ErrorCode::invalid_argument, "there is no folder '" + folder.string() + "'", "--output",
                    "make the folder first");
}

Status run(KernelsArguments& arguments, Terminal& terminal) {
  if (auto good = check_output(arguments.output); !good) return good;
  if (!arguments.shapes.empty()) {
    auto shapes = parse_kernel_shapes(arguments.shapes);
    if (!shapes) return unexpected(shapes.error());
    arguments.bench.shapes = std::move(*shapes);
  }
  arguments.bench.cancelled = interrupted;
  const std::string date = utc_now();
  const auto report = bench_kernels(arguments.bench);
  if (!report) return unexpected(report.error());
  const std::string json = kernel_report_json(*report, date, kCommit).dump(
                               1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  auto printed = arguments.json ? terminal.print(json) : terminal.print_text(kernel_report_text(*report));
  if (arguments.output.empty()) return printed;
  auto written = write_output_file(output_path(arguments.output, *report), json);
  return printed ? written : printed;
}

int run_bench_kernels(KernelsArguments& arguments) {
  Terminal terminal;
  const Messages messages(terminal);
  const auto good = run(arguments, terminal);
  if (good) return kOk;
  Error error = good.error();
  for (const char* option : {"op", "shapes", "device", "repeat"}) {
    if (error.where == option) error.where = std::string("--") + option;
  }
  terminal.error(error);
  return exit_code_of(error);
}

std::string op_help() {
  std::string text = "What is measured, with commas between; by default all. ";
  for (const auto& op : kernel_bench_ops()) text += op.name + ": " + op.summary + ". ";
  return text;
}

}  // namespace

void add_bench_kernels_command(CLI::App& bench, Action& chosen) {
  auto a = std::make_shared<KernelsArguments>();
  auto* command = bench.add_subcommand("kernels", "Measure single operations on random data, beside what the device reaches");
  command->add_option("--op", a->bench.ops, op_help())->type_name("NAME,…")->delimiter(',');
  command->add_option("--shapes", a->shapes,
                      "MxNxK of products, MxK of rows, with commas between; by default those of Whisper base, on a GPU "
                      "also large ones")
      ->type_name("SHAPE,…");
  command->add_option("--device", a->bench.device, "auto (the first GPU where there is one), cpu, cuda, cuda:N")
      ->capture_default_str();
  command->add_option("-t,--threads", a->bench.threads, "Of a CPU; 0: what the cgroup quota allows")->capture_default_str();
  command->add_option("--repeat", a->bench.repeat, "Rounds; medians and minima are shown")
      ->check(CLI::Range(1, 1000))->capture_default_str();
  command->add_option("-o,--output", a->output,
                      "Also write the JSON: a file NAME.json, or kernels-DEVICE.json in a folder that is there")
      ->type_name("PATH");
  command->add_flag("--json", a->json, "As JSON");
  command->callback([a, &chosen] { chosen = [a] { return run_bench_kernels(*a); }; });
}

}  // namespace oasr::cli
