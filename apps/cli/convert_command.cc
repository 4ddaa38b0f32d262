#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/model_options.h"
#include "cli/pull_command.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "oasr/convert.h"
#include "oasr/models.h"
#include "oasr/recognizer.h"

namespace oasr::cli {
namespace {

struct ConvertArguments {
  std::string source, destination;
  ConvertOptions options;
  bool json = false, quiet = false;
};

Result<std::string> find_source(const std::string& name, Terminal& terminal) {
  auto path = resolve_model(name);
  if (path || !in_catalogue(name)) return path;
  return pull_with_progress(name, terminal);
}

Result<ConvertReport> convert(ConvertArguments& arguments, Terminal& terminal) {
  EngineConfig engine;
  engine.dtype = arguments.options.dtype;
  engine.quantization = arguments.options.quantization;
  engine.quantization_options = arguments.options.quantization_options;
  engine.threads = arguments.options.threads;
  if (auto good = check_options(engine, {}, {}); !good) return unexpected(as_command_line(good.error()));
  if (auto good = check_convert_options(arguments.options); !good)
    return unexpected(as_command_line(good.error()));
  const auto source = find_source(arguments.source, terminal);
  if (!source) return unexpected(source.error());
  arguments.options.progress = [&](double done, double total) {
    terminal.progress("writing", done / 1e6, total / 1e6, "MB");
  };
  arguments.options.cancelled = interrupted;
  auto report = convert_model(*source, arguments.destination, arguments.options);
  terminal.clear_progress();
  return report;
}

int run_convert(ConvertArguments& arguments) {
  Terminal terminal(arguments.quiet ? Verbosity::quiet : Verbosity::normal);
  const auto report = convert(arguments, terminal);
  if (!report) {
    terminal.error(report.error());
    return exit_code_of(report.error());
  }
  terminal.note(fmt::format("{}source        {} ({})\nwritten       {} ({})", report->summary,
                            arguments.source, megabytes(static_cast<double>(report->source_bytes)),
                            report->path, megabytes(static_cast<double>(report->bytes))));
  if (arguments.json ? terminal.print(report->quantization) : terminal.print_text(report->path + "\n")) {
    return kOk;
  }
  terminal.error(terminal.output_error().error());
  return kError;
}

}  // namespace

void add_convert_command(CLI::App& app, Action& chosen) {
  auto a = std::make_shared<ConvertArguments>();
  auto* command = app.add_subcommand(
      "convert", "Write any checkpoint as an oasr folder, at full precision or quantized");
  command->add_option("source", a->source, "Checkpoint, or a name of the catalogue")
      ->required()->type_name("SRC");
  command->add_option("destination", a->destination, "Folder to write; it must not exist or be empty")
      ->required()->type_name("DST");
  command->add_option("--dtype", a->options.dtype,
                      "Full-precision weights: auto, float32, float16, bfloat16")
      ->capture_default_str();
  add_quantization_options(*command, a->options.quantization, a->options.quantization_options,
                           "Quantization");
  command
      ->add_option(
          "--w4", a->options.w4,
          "What 4-bit weights of others (QServe, LMQuant, deepcompressor, compressed-tensors) do not say: "
          "group=128|channel, zeros=pre_scaled|post_scaled, order=quads|pairs, codes=occurring|all, "
          "sum=codes")
      ->type_name("KEY=VALUE,…")
      ->group("4-bit weights of others");
  command
      ->add_flag("--requantize", a->options.requantize,
                 "Replace 4-bit scales that have no exact form; says at what error, layer by layer")
      ->group("4-bit weights of others");
  command
      ->add_option(
          "--to", a->options.to,
          "Layout that is written: oasr, or qserve (an oasr folder with 4-bit layers as QServe's tensors)")
      ->capture_default_str();
  command->add_option("-t,--threads", a->options.threads, "0: what the cgroup quota allows")
      ->capture_default_str();
  command->add_flag("--json", a->json, "Print what every layer became, as JSON");
  command->add_flag("-q,--quiet", a->quiet, "No messages but errors");
  command->callback([a, &chosen] { chosen = [a] { return run_convert(*a); }; });
}

}  // namespace oasr::cli
