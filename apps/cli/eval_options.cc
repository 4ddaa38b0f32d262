#include "cli/eval_options.h"

#include <CLI/CLI.hpp>

#include "cli/exit_codes.h"

namespace oasr::cli {
namespace {

constexpr const char* kWhat = "What to measure";
constexpr const char* kHow = "How errors are counted";
constexpr const char* kResults = "Results";

Unexpected usage(std::string what, std::string where, std::string remedy = {}) {
  return unexpected(ErrorCode::invalid_argument, std::move(what), std::move(where),
                    std::move(remedy));
}

void add_what(CLI::App& command, EvalArguments& a) {
  command.add_option("model", a.model, "Path, or a name of the catalogue; with --manifest")
      ->type_name("MODEL");
  command
      .add_option(
          "--manifest", a.manifests,
          "JSON Lines: {\"audio\", \"text\", \"id\", \"speaker\", …}; several make several sets")
      ->type_name("FILE")
      ->group(kWhat);
  command
      .add_option("--score", a.score, "References and hypotheses: Kaldi text, tsv, trn or jsonl")
      ->type_name("REF HYP")
      ->expected(2)
      ->group(kWhat);
  command.add_option("--compare", a.compare, "Two results of oasr eval, utterance by utterance")
      ->type_name("A.json B.json")
      ->expected(2)
      ->group(kWhat);
  command.add_option("--limit", a.read.limit, "Only the first utterances of each set; 0: all")
      ->check(CLI::NonNegativeNumber)
      ->group(kWhat);
  command
      .add_option(
          "--empty-reference", a.read.empty_reference,
          "A reference without text: refuse, skip, or score (what is recognized is inserted)")
      ->capture_default_str()
      ->check(CLI::IsMember({"refuse", "skip", "score"}))
      ->group(kWhat);
  command.add_option("--format", a.format, "Of --score: auto, kaldi, tsv, trn, jsonl")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "kaldi", "tsv", "trn", "jsonl"}))
      ->group(kWhat);
  command.add_option("--utt2spk", a.utt2spk, "Of --score: a Kaldi file of speakers")
      ->type_name("FILE")
      ->group(kWhat);
  command
      .add_option("--speaker-separator", a.speaker_separator,
                  "Of --score: the speaker is the id up to this text")
      ->type_name("TEXT")
      ->group(kWhat);
}

void add_how(CLI::App& command, EvalArguments& a) {
  command
      .add_option("--normalizer", a.scoring.normalizer,
                  "none, basic, whisper-english, chinese-chars")
      ->capture_default_str()
      ->group(kHow);
  command
      .add_option("--costs", a.scoring.costs,
                  "unit: the fewest edits; sclite: substitution 4, others 3")
      ->capture_default_str()
      ->group(kHow);
  command.add_option("--resamples", a.scoring.resamples, "Of the bootstrap")
      ->capture_default_str()
      ->group(kHow);
  command.add_option("--bootstrap-seed", a.scoring.seed, "Of the bootstrap")
      ->capture_default_str()
      ->group(kHow);
}

void add_results(CLI::App& command, EvalArguments& a) {
  command
      .add_option("-o,--output", a.output,
                  "Write NAME.json, NAME.txt and NAME.html; a run that was stopped goes on from "
                  "NAME.json.partial")
      ->type_name("NAME.json")
      ->group(kResults);
  command.add_flag("--restart", a.restart, "Throw a partial result away")->group(kResults);
  command.add_flag("--json", a.json, "Print JSON, not tables")->group(kResults);
  command.add_flag("--all-changes", a.all_changes, "Of --compare: show every changed utterance")
      ->group(kResults);
  auto& t = a.transcribe;
  command.add_flag("-q,--quiet,!--no-quiet", t.quiet, "No messages but errors")->group(kResults);
  command.add_flag("-v,--verbose,!--no-verbose", t.verbose, "What is loaded, and every utterance")
      ->group(kResults);
  command
      .add_flag("--progress,!--no-progress", t.progress,
                "Progress also when standard error is no terminal")
      ->group(kResults);
}

Status check_kind(const EvalArguments& a) {
  const int kinds = !a.manifests.empty() + !a.score.empty() + !a.compare.empty();
  if (kinds != 1) {
    return usage(
        kinds == 0 ? "there is nothing to measure" : "two things at once", {},
        "oasr eval MODEL --manifest FILE, oasr eval --score REF HYP, or oasr eval --compare A B");
  }
  if (a.manifests.empty() != a.model.empty()) {
    return a.model.empty() ? usage("needs a model", "--manifest", "oasr eval MODEL --manifest FILE")
                           : usage("a model needs --manifest", a.model);
  }
  const bool of_files = a.format != "auto" || !a.utt2spk.empty() || !a.speaker_separator.empty();
  if (of_files && a.score.empty())
    return usage("is for --score", "--format, --utt2spk, --speaker-separator");
  if (a.restart && (a.manifests.empty() || a.output.empty())) {
    return usage("needs --manifest and --output", "--restart");
  }
  if (a.all_changes && a.compare.empty()) return usage("is for --compare", "--all-changes");
  if (!a.output.empty() && !a.output.ends_with(".json")) {
    return usage("does not end with .json", a.output, "the table and the page are put beside it");
  }
  return {};
}

}  // namespace

void add_eval_options(CLI::App& command, EvalArguments& arguments) {
  add_what(command, arguments);
  add_how(command, arguments);
  add_results(command, arguments);
  add_decoding_options(command, arguments.transcribe);
  command
      .add_flag("--single-window", arguments.single_window,
                "Clips of 30 s or less as openai-whisper's decode() takes them: padded samples")
      ->group("Search");
}

Status finish_eval_options(EvalArguments& arguments) {
  if (auto good = check_kind(arguments); !good) return good;
  if (auto good = check_eval_options(arguments.scoring); !good) {
    return unexpected(as_command_line(good.error()));
  }
  auto& transcribe = arguments.transcribe;
  if (auto good = finish_options(transcribe); !good) return good;
  transcribe.engine.model = arguments.model;
  transcribe.options.single_window = arguments.single_window;
  if (arguments.manifests.empty()) return {};
  if (auto good = check_options(transcribe.engine, transcribe.options, transcribe.audio); !good) {
    return unexpected(as_command_line(good.error()));
  }
  return {};
}

}  // namespace oasr::cli
