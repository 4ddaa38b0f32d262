#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>

#include "cli/command.h"
#include "cli/eval_options.h"
#include "cli/eval_run.h"
#include "cli/exit_codes.h"
#include "cli/messages.h"
#include "cli/pull_command.h"
#include "cli/terminal.h"
#include "oasr/models.h"
#include "oasr/outputs.h"

namespace oasr::cli {
namespace {

namespace fs = std::filesystem;

std::string beside(const std::string& output, const char* ending) {
  return fs::path(output).replace_extension(ending).string();
}

// Some, or all, utterances have no hypothesis.
int status_of(const EvalReport& report) {
  const auto failed = std::count_if(report.utterances.begin(), report.utterances.end(),
                                    [](const auto& u) { return !u.failure.empty(); });
  if (failed == 0) return kOk;
  return failed == static_cast<std::ptrdiff_t>(report.utterances.size()) ? kAllFailed : kSomeFailed;
}

Status write_files(const std::string& output, const std::string& json, const std::string& text,
                   const std::string& html) {
  if (output.empty()) return {};
  if (auto good = write_output_file(output, json); !good) return good;
  if (auto good = write_output_file(beside(output, ".txt"), text); !good) return good;
  return html.empty() ? Status() : write_output_file(beside(output, ".html"), html);
}

int print(const EvalArguments& arguments, const std::string& json, const std::string& text,
          Terminal& terminal, int status) {
  if (arguments.json ? terminal.print(json) : terminal.print_text(text)) return status;
  terminal.error(terminal.output_error().error());
  return kError;
}

// Writes and prints a report.
int deliver(const EvalArguments& arguments, const EvalReport& report, Terminal& terminal) {
  const auto json = eval_json(report), text = eval_text(report);
  if (auto good = write_files(arguments.output, json, text, eval_html(report)); !good) {
    return end_with(good.error(), terminal);
  }
  return print(arguments, json, text, terminal, status_of(report));
}

int run_score(const EvalArguments& arguments, Terminal& terminal) {
  ScoreFiles files{arguments.score[0], arguments.score[1],          arguments.format,
                   arguments.utt2spk,  arguments.speaker_separator, arguments.read};
  auto texts = read_score_files(files);
  if (!texts) return end_with(texts.error(), terminal);
  auto report = score_utterances(std::move(texts->utterances), arguments.scoring);
  if (!report) return end_with(report.error(), terminal);
  report->subject = arguments.score[1];
  report->extra = std::move(texts->extra);
  report->notes.insert(report->notes.begin(), texts->notes.begin(), texts->notes.end());
  return deliver(arguments, *report, terminal);
}

int run_compare(const EvalArguments& arguments, Terminal& terminal) {
  const auto a = read_eval_report(arguments.compare[0]);
  if (!a) return end_with(a.error(), terminal);
  const auto b = read_eval_report(arguments.compare[1]);
  if (!b) return end_with(b.error(), terminal);
  const auto comparison = compare_reports(*a, *b);
  if (!comparison) return end_with(comparison.error(), terminal);
  const auto json = comparison_json(*a, *b, *comparison);
  const auto text = comparison_text(*a, *b, *comparison, arguments.all_changes ? 0 : 20);
  if (auto good = write_files(arguments.output, json, text, {}); !good)
    return end_with(good.error(), terminal);
  return print(arguments, json, text, terminal, kOk);
}

Result<EvalInputs> read_inputs(const EvalArguments& arguments, Terminal& terminal) {
  auto inputs = read_eval_manifests(arguments.manifests, arguments.read);
  if (!inputs) return inputs;
  if (auto good = check_eval_audio(*inputs); !good) return unexpected(good.error());
  for (const auto& note : inputs->notes) terminal.warn(note);
  return inputs;
}

// The journal beside the output, or none without one.
Result<std::unique_ptr<EvalJournal>> open_journal(const EvalArguments& arguments,
                                                  const Recognizer& recognizer) {
  if (arguments.output.empty()) return std::unique_ptr<EvalJournal>();
  const auto path = arguments.output + ".partial";
  std::error_code failed;
  if (arguments.restart) fs::remove(path, failed);
  const auto folder = fs::path(path).parent_path();
  if (!folder.empty()) fs::create_directories(folder, failed);
  auto journal = EvalJournal::open(path, eval_configuration(arguments, recognizer));
  if (!journal) return unexpected(journal.error());
  return std::make_unique<EvalJournal>(std::move(*journal));
}

int measure(const EvalArguments& arguments, const EvalInputs& inputs, Recognizer& recognizer,
            Terminal& terminal) {
  auto journal = open_journal(arguments, recognizer);
  if (!journal) return end_with(journal.error(), terminal);
  EvalRun run(arguments, inputs, journal->get(), terminal);
  if (auto good = run.run(recognizer); !good) return end_with(good.error(), terminal);
  EvalReport times;
  auto report = score_utterances(run.utterances(times), arguments.scoring);
  if (!report) return end_with(report.error(), terminal);
  report->subject = arguments.model;
  if (!arguments.transcribe.engine.quantization.empty()) {
    report->subject += ", " + arguments.transcribe.engine.quantization;
  }
  if (const auto& arithmetic = arguments.transcribe.engine.arithmetic; arithmetic != "float32") {
    report->subject += ", " + arithmetic + " arithmetic";
  }
  report->configuration = eval_configuration(arguments, recognizer);
  report->audio_seconds = times.audio_seconds;
  report->wall_seconds = times.wall_seconds;
  report->peak_mib = times.peak_mib;
  report->notes.insert(report->notes.end(), inputs.notes.begin(), inputs.notes.end());
  report->notes.insert(report->notes.end(), times.notes.begin(), times.notes.end());
  const int status = deliver(arguments, *report, terminal);
  // What failed is tried again by the same command, and the rest is kept for that.
  if (*journal == nullptr) return status;
  if (status != kOk) {
    terminal.note(arguments.output + ".partial is kept: the same command tries what failed again");
    return status;
  }
  const auto removed = (*journal)->remove();
  return removed ? status : end_with(removed.error(), terminal);
}

int run_model(const EvalArguments& arguments, Terminal& terminal) {
  const auto inputs = read_inputs(arguments, terminal);
  if (!inputs) return end_with(inputs.error(), terminal);
  auto path = resolve_model(arguments.model);
  if (!path && in_catalogue(arguments.model)) path = pull_with_progress(arguments.model, terminal);
  if (!path) return end_with(path.error(), terminal);
  const Messages messages(terminal);
  auto config = arguments.transcribe.engine;
  config.model = *path;
  auto recognizer = Recognizer::load(config);
  return recognizer ? measure(arguments, *inputs, *recognizer, terminal) : end_with(recognizer.error(), terminal);
}

int run_eval(EvalArguments& arguments) {
  const auto& t = arguments.transcribe;
  Terminal terminal(t.quiet     ? Verbosity::quiet
                    : t.verbose ? Verbosity::verbose
                                : Verbosity::normal,
                    t.progress);
  if (auto good = finish_eval_options(arguments); !good) return end_with(good.error(), terminal);
  if (!arguments.score.empty()) return run_score(arguments, terminal);
  if (!arguments.compare.empty()) return run_compare(arguments, terminal);
  return run_model(arguments, terminal);
}

}  // namespace

void add_eval_command(CLI::App& app, Action& chosen) {
  auto arguments = std::make_shared<EvalArguments>();
  auto* command = app.add_subcommand("eval", "Word and character errors of a model or of texts");
  add_eval_options(*command, *arguments);
  command->footer("docs/eval.md shows how to measure, read and compare.");
  command->callback(
      [arguments, &chosen] { chosen = [arguments] { return run_eval(*arguments); }; });
}

}  // namespace oasr::cli
