// One run of `oasr transcribe` over its inputs: results, messages and the exit status.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "cli/inputs.h"
#include "cli/output_plan.h"
#include "cli/terminal.h"
#include "cli/transcribe_options.h"
#include "oasr/recognizer.h"

namespace oasr::cli {

// Borrows everything; used once.
class TranscribeRun {
 public:
  TranscribeRun(const TranscribeArguments& arguments, const OutputPlan& plan,
                const std::vector<Input>& inputs, std::size_t skipped, Terminal& terminal)
      : arguments_(arguments), plan_(plan), inputs_(inputs), skipped_(skipped), terminal_(terminal) {}

  // Transcribes every input, in order, until Ctrl-C or an error of standard output. Returns the
  // exit status.
  int run(Recognizer& recognizer);

 private:
  void run_one_by_one(Recognizer& recognizer);
  void run_together(Recognizer& recognizer);

  // Takes the result of input `index`: writes it, tells warnings or the error, counts.
  void finish(std::size_t index, const Result<Transcript>& result);
  void fail(const Input& input, const Error& error);
  Status deliver(const Input& input, const Transcript& transcript);

  // Prints a piece of a text format as soon as the segment is final.
  void stream(const Input& input, const Segment& segment);
  bool streams() const;
  std::string prefixed(const Input& input, const std::string& lines) const;

  AudioInput audio(const Input& input) const;
  OutputContext context(const Input& input) const;
  bool stopped() const;
  void summary() const;
  int exit_status() const;

  const TranscribeArguments& arguments_;
  const OutputPlan& plan_;
  const std::vector<Input>& inputs_;
  std::size_t skipped_;
  Terminal& terminal_;

  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  bool batched_ = false;
  int streamed_ = 0;                 // segments of the input at hand
  std::size_t done_ = 0, failed_ = 0, truncated_ = 0, empty_ = 0;
  bool only_usage_errors_ = true;    // of the failed ones
  double audio_seconds_ = 0;
};

}  // namespace oasr::cli
