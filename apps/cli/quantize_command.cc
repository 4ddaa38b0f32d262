#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>

#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/messages.h"
#include "cli/model_options.h"
#include "cli/pull_command.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "oasr/models.h"
#include "oasr/quantize.h"

namespace oasr::cli {
namespace {

struct QuantizeArguments {
  std::string source, destination;
  QuantizeOptions options;
  std::string alpha;
  bool list = false, json = false, quiet = false, progress = false;
};

std::vector<std::string> split_commas(const std::vector<std::string>& values) {
  std::vector<std::string> all;
  for (const std::string& value : values) {
    std::size_t from = 0;
    while (true) {
      const auto comma = value.find(',', from);
      if (const auto part = value.substr(from, comma - from); !part.empty()) all.push_back(part);
      if (comma == std::string::npos) break;
      from = comma + 1;
    }
  }
  return all;
}

// An error of an option under its name on the command line; places in files stay as they are.
Error named_option(Error error, const QuantizeArguments& arguments) {
  const QuantizeOptions& options = arguments.options;
  for (const auto* path : {&arguments.source, &arguments.destination, &options.calib_manifest, &options.gate_manifest,
                           &options.audio_root, &options.statistics, &options.recipe}) {
    if (error.where == *path) return error;
  }
  constexpr std::array kOthers = {std::pair("normalizer", "gate-normalizer"),
                                  std::pair("decode", "gate-decode"),
                                  std::pair("max_wer_increase", "max-wer-increase")};
  const bool option = !error.where.empty() &&
                      error.where.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string::npos;
  if (!option) return error;
  for (const auto& [name, spelled] : kOthers) {
    if (error.where == name) error.where = spelled;
  }
  std::ranges::replace(error.where, '_', '-');
  error.where = "--" + error.where;
  if (error.code == ErrorCode::unsupported) error.code = ErrorCode::invalid_argument;
  return error;
}

Result<QuantizeOutcome> quantize(QuantizeArguments& a, Terminal& terminal) {
  QuantizeOptions& options = a.options;
  if (!a.alpha.empty()) options.alpha = a.alpha;
  options.ignore = split_commas(options.ignore);
  options.module_types = split_commas(options.module_types);
  if (a.source.empty() || (a.destination.empty() && !options.dry_run)) {
    return unexpected(ErrorCode::invalid_argument, "a checkpoint to read and a folder to write are needed",
                      {}, "oasr quantize SRC DST (oasr quantize --help)");
  }
  if (auto good = check_quantize_options(options); !good) return unexpected(good.error());
  auto path = resolve_model(a.source);
  if (!path && in_catalogue(a.source)) path = pull_with_progress(a.source, terminal);
  if (!path) return unexpected(path.error());
  options.progress = [&](const std::string& stage, double done, double total) {
    stage == "writing" ? terminal.progress(stage, done / 1e6, total / 1e6, "MB")
                       : terminal.progress(stage, done, total, "");
  };
  options.note = [&](const std::string& line) {
    terminal.clear_progress();
    terminal.note(line);
  };
  options.cancelled = interrupted;
  const Messages messages(terminal);
  auto outcome = quantize_model(*path, a.destination, options);
  terminal.clear_progress();
  return outcome;
}

int run_quantize(QuantizeArguments& arguments) {
  Terminal terminal(arguments.quiet ? Verbosity::quiet : Verbosity::normal, arguments.progress);
  const auto print = [&](const std::string& text) {
    if (terminal.print_text(text)) return true;
    terminal.error(terminal.output_error().error());
    return false;
  };
  if (arguments.list) return print(quantize_recipes()) ? kOk : kError;
  const auto outcome = quantize(arguments, terminal);
  if (!outcome) {
    terminal.error(named_option(outcome.error(), arguments));
    return exit_code_of(outcome.error());
  }
  terminal.note(outcome->summary);
  if (!outcome->analysis.empty() && !arguments.json && !print(outcome->analysis)) return kError;
  if (arguments.json && !terminal.print(outcome->report_json)) return kError;
  if (!outcome->gate_passed) {
    const bool budget = !arguments.options.budget.empty();
    terminal.error({ErrorCode::unsupported, outcome->refusal + ": nothing was written", arguments.destination,
                    budget ? "see the verdict above; allow more with --budget"
                           : "see the verdict above; raise --max-wer-increase, or leave layers out with "
                             "--ignore"});
    return kGateRefused;
  }
  if (!arguments.json && !outcome->path.empty() && !print(outcome->path + "\n")) return kError;
  return kOk;
}

void add_calibration_options(CLI::App& command, QuantizeArguments& a) {
  const char* group = "Calibration";
  QuantizeOptions& o = a.options;
  command
      .add_option("--calib-manifest", o.calib_manifest, "JSON Lines with \"audio\": speech as it is served")
      ->type_name("FILE")
      ->group(group);
  command.add_option("--audio-root", o.audio_root, "What its paths are relative to [the manifest's folder]")
      ->type_name("DIR")
      ->group(group);
  command.add_option("--calib-utterances", o.calib_utterances, "Evenly strided over the sorted manifest")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000))
      ->group(group);
  command
      .add_option("--calib-dtype", o.calib_dtype,
                  "Storage of the copy that is calibrated, for less memory: float32, float16, bfloat16")
      ->type_name("DTYPE")
      ->capture_default_str()
      ->group(group);
  command.add_option("-l,--language", o.language, "Of the recordings, for models that ask")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--statistics", o.statistics,
                  "Where its result is kept for other recipes [DST.calibration]")
      ->type_name("FILE")
      ->group(group);
  command.add_option("--seed", o.seed, "Of the rows that errors are measured on")
      ->capture_default_str()
      ->group(group);
}

void add_gate_options(CLI::App& command, QuantizeArguments& a) {
  const char* group = "Gate";
  QuantizeOptions& o = a.options;
  auto* manifest = command.add_option("--gate-manifest", o.gate_manifest,
                                      "JSON Lines with \"audio\" and \"text\": both models decode "
                                      "them, and a worse one is not written");
  manifest->type_name("FILE")->group(group);
  command.add_option("--max-wer-increase", o.max_wer_increase, "Points of word error")
      ->capture_default_str()
      ->needs(manifest)
      ->group(group);
  command.add_option("--gate-decode", o.gate_decode, "Decoding mode of a CTC model [attention_rescoring]")
      ->type_name("MODE")
      ->needs(manifest)
      ->group(group);
  command.add_option("--gate-normalizer", o.gate_normalizer, "none, basic, whisper-english, chinese-chars")
      ->capture_default_str()
      ->needs(manifest)
      ->group(group);
  command.add_option("--gate-attempts", o.gate_attempts, "Models that backing off may try")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000))
      ->needs(manifest)
      ->group(group);
  command.add_option("--device", o.device, "Of the gate and of measured times: auto (the first GPU, if any), cpu, cuda, cuda:N")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--budget", o.budget,
                  "Mix precisions: wer=0.05,bytes=60M,ms=40 (points, size, milliseconds a second "
                  "of audio), "
                  "any of them")
      ->type_name("LIMITS")
      ->group(group);
}

}  // namespace

void add_quantize_command(CLI::App& app, Action& chosen) {
  auto a = std::make_shared<QuantizeArguments>();
  auto* command =
      app.add_subcommand("quantize", "Calibrate a model and write it quantized, if it hears as well");
  QuantizeOptions& o = a->options;
  command->add_option("source", a->source, "Checkpoint, or a name of the catalogue")->type_name("SRC");
  command->add_option("destination", a->destination, "Folder to write")->type_name("DST");
  command->add_option("--recipe", o.recipe, "A name of --list, or a YAML file")->capture_default_str();
  command->add_flag("--list", a->list, "Explain the recipes and their options");
  command->add_option("--alpha", a->alpha, "Of SmoothQuant: 0 to 1, or search [search]")->type_name("A");
  command->add_option("--ignore", o.ignore, "Layers that stay at full precision")->type_name("GLOB,…");
  command
      ->add_option("--module-types", o.module_types,
                   "Kinds of layers [linear,pointwise_conv]; conv1d, conv2d, conv, all")
      ->type_name("KIND,…");
  command->add_option("--option", o.options, "Of an algorithm: static_inputs.observer=minmax (see --list)")
      ->type_name("ALGORITHM.KEY=VALUE")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_flag("--analyze", o.analyze,
                    "Also the error of every layer alone and with all before it, ranked");
  command->add_flag("--dry-run", o.dry_run, "Decide and report, write nothing");
  command->add_flag("--force", o.force, "Replace a checkpoint that is there");
  command->add_option("-t,--threads", o.threads, "0: what the cgroup quota allows")->capture_default_str();
  command->add_flag("--json", a->json, "Print the report as JSON");
  command->add_flag("--progress", a->progress, "Show progress where standard error is no terminal, too");
  command->add_flag("-q,--quiet", a->quiet, "No messages but errors");
  add_calibration_options(*command, *a);
  add_gate_options(*command, *a);
  command->callback([a, &chosen] { chosen = [a] { return run_quantize(*a); }; });
}

}  // namespace oasr::cli
