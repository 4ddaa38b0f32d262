// The recordings of an evaluation through a model, resumable.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/eval_options.h"
#include "cli/terminal.h"
#include "oasr/eval.h"
#include "oasr/recognizer.h"

namespace oasr::cli {

// Borrows everything; used once.
class EvalRun {
 public:
  // `journal`: what was done before and where to note what is done; null without --output.
  EvalRun(const EvalArguments& arguments, const EvalInputs& inputs, EvalJournal* journal,
          Terminal& terminal)
      : arguments_(arguments), inputs_(inputs), journal_(journal), terminal_(terminal) {}

  // Transcribes what is not done yet. Errors: cancelled (Ctrl-C; says how to go on), io (the
  // journal).
  Status run(Recognizer& recognizer);

  // The utterances with their hypotheses, and times, memory and warnings in `report`.
  std::vector<EvalUtterance> utterances(EvalReport& report) const;

 private:
  using Key = std::pair<std::string, std::string>;

  Status take_over();
  void finish(const EvalInput& row, const Result<Transcript>& result);

  const EvalArguments& arguments_;
  const EvalInputs& inputs_;
  EvalJournal* journal_;
  Terminal& terminal_;
  std::map<Key, EvalJournal::Entry> done_;
  std::size_t finished_ = 0;
  Status written_;  // of the journal
  std::atomic<bool> write_failed_ = false;  // the same, for any thread
  std::chrono::steady_clock::time_point last_{};
};

// What the texts and times depend on: a JSON object for the journal and the report.
std::string eval_configuration(const EvalArguments& arguments, const Recognizer& recognizer);

}  // namespace oasr::cli
