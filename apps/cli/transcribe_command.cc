#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/messages.h"
#include "cli/pull_command.h"
#include "cli/streaming_run.h"
#include "cli/transcribe_options.h"
#include "cli/transcribe_run.h"
#include "oasr/models.h"

namespace oasr::cli {
namespace {

// The work as it was asked for, before anything slow happens.
struct Job {
  OutputPlan plan;
  std::vector<Input> inputs;
  std::size_t skipped = 0;
};

Result<Job> plan_job(TranscribeArguments& arguments) {
  if (auto good = finish_options(arguments); !good) return unexpected(good.error());
  if (auto good = check_options(arguments.engine, arguments.options, arguments.audio); !good) {
    return unexpected(as_command_line(good.error()));
  }
  if (arguments.formats.empty() && !arguments.streams) arguments.formats = {"txt"};
  auto formats = parse_output_formats(arguments.formats.empty() ? std::vector<std::string>{"txt"} : arguments.formats);
  if (!formats) return unexpected(formats.error());
  auto inputs = collect_inputs({arguments.inputs, arguments.manifest, arguments.recursive});
  if (!inputs) return unexpected(inputs.error());
  // Names are given to all inputs, so that every shard and every later run finds the same ones.
  auto plan = OutputPlan::make({*formats, arguments.output_dir, arguments.output_file}, *inputs);
  if (!plan) return unexpected(plan.error());
  if (!arguments.shard.empty()) {
    const auto shard = parse_shard(arguments.shard);
    if (!shard) return unexpected(shard.error());
    *inputs = shard_of(*inputs, *shard);
  }
  Job job{std::move(*plan), std::move(*inputs), 0};
  if (arguments.skip_existing) {
    if (job.plan.to_stdout()) {
      return unexpected(ErrorCode::invalid_argument, "needs --output-dir", "--skip-existing");
    }
    job.skipped = std::erase_if(job.inputs, [&](const Input& input) { return job.plan.done(input); });
  }
  return job;
}

// The checkpoint's path. A model of the catalogue is pulled on first use, after saying so.
Result<std::string> locate_model(const std::string& name, Terminal& terminal) {
  auto path = resolve_model(name);
  if (path || !in_catalogue(name)) return path;
  const auto rows = catalogue();
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const CatalogueModel& model) {
    return model.name == name ||
           std::find(model.aliases.begin(), model.aliases.end(), name) != model.aliases.end();
  });
  terminal.note(fmt::format("the model '{}' ({} MB) is not in the cache {}; pulling it, once", name,
                            row->download_mb, cache_folder()));
  return pull_with_progress(name, terminal);
}

void show_timings(const Timings& timings, Terminal& terminal) {
  if (timings.utterances > 0) {
    const std::string where =
        timings.searched_on_gpu > 0 ? fmt::format(" ({} on the GPU)", timings.searched_on_gpu) : std::string();
    terminal.detail(fmt::format("load {:.2f} s; {} utterances: features {:.0f} ms, encoder {:.0f} ms, search {:.0f} ms{}, "
                                "rescoring {:.0f} ms",
                                timings.load_seconds, timings.utterances, 1e3 * timings.feature_seconds,
                                1e3 * timings.encode_seconds, 1e3 * timings.search_seconds, where,
                                1e3 * timings.rescore_seconds));
  }
  if (timings.windows == 0) return;
  terminal.detail(fmt::format(
      "load {:.2f} s; encoder {:.0f} ms a window ({} windows); prompt {:.1f} ms ({}); decoder "
      "{:.1f} ms a token ({})",
      timings.load_seconds, 1e3 * timings.encode_seconds / static_cast<double>(timings.windows),
      timings.windows,
      1e3 * timings.prompt_seconds / static_cast<double>(std::max<std::int64_t>(timings.prompts, 1)),
      timings.prompts,
      1e3 * timings.step_seconds / static_cast<double>(std::max<std::int64_t>(timings.step_rows, 1)),
      timings.step_rows));
}

int run_transcribe(TranscribeArguments& arguments) {
  const auto verbosity = arguments.quiet     ? Verbosity::quiet
                         : arguments.verbose ? Verbosity::verbose
                                             : Verbosity::normal;
  Terminal terminal(verbosity, arguments.progress);
  auto job = plan_job(arguments);
  if (!job) return end_with(job.error(), terminal);
  if (job->inputs.empty()) {
    terminal.note(fmt::format("nothing to do: {} done before", job->skipped));
    return kOk;
  }
  // Told before an hour of decoding, not after.
  if (auto good = job->plan.check_writable(job->inputs); !good) return end_with(good.error(), terminal);
  const auto path = locate_model(arguments.engine.model, terminal);
  if (!path) return end_with(path.error(), terminal);

  const Messages messages(terminal);
  if (arguments.streams) return run_streaming(arguments, job->inputs.front(), *path, terminal);
  auto config = arguments.engine;
  config.model = *path;
  auto recognizer = Recognizer::load(config);
  if (!recognizer) return end_with(recognizer.error(), terminal);
  arguments.options = recognizer->resolved(arguments.options);
  TranscribeRun run(arguments, job->plan, job->inputs, job->skipped, terminal);
  const int status = run.run(*recognizer);
  show_timings(recognizer->timings(), terminal);
  return status;
}

}  // namespace

void add_transcribe_command(CLI::App& app, Action& chosen) {
  auto arguments = std::make_shared<TranscribeArguments>();
  auto* command = app.add_subcommand("transcribe", "Audio in, text out");
  add_transcribe_options(*command, *arguments);
  command->footer("Option names of whisper and whisper.cpp work too: docs/cli.md.");
  command->callback([arguments, &chosen] {
    chosen = [arguments] { return run_transcribe(*arguments); };
  });
}

}  // namespace oasr::cli
