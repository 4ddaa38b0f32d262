// One recording on its way through a CTC model.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/ctc_search.h"
#include "engine/utterance_source.h"
#include "oasr/transcript.h"

namespace oasr::engine {

// Gives utterances one at a time and takes their texts. Used by one thread at a time.
class CtcRecording {
 public:
  // All must outlive the recording; `callbacks` are called from take(). front_end: null for the processor.
  CtcRecording(const CtcPlan& plan, AudioSource& audio, const Callbacks& callbacks, MelDevice* front_end,
               ThreadPool& pool);

  // Features [n, input_dim] of the next utterance, n > 0. False: the recording is over, or has failed. Recordings
  // may do so at a time.
  bool next(std::vector<float>& features);
  // The results of that utterance, best first.
  void take(const std::vector<CtcResult>& results);
  // Ends the recording with an error.
  void fail(Error error);

  // When over, once.
  Result<Transcript> take_result() { return std::move(*result_); }

 private:
  Status read(std::vector<float>& features);
  void finish();

  const CtcPlan& plan_;
  AudioSource& audio_;
  const Callbacks& callbacks_;
  MelDevice* front_end_;
  UtteranceSource utterances_;
  double offset_ = 0, duration_ = 0;  // seconds, of the utterance at hand
  int taken_ = 0;                     // utterances
  Transcript transcript_;
  std::optional<Result<Transcript>> result_;
};

}  // namespace oasr::engine
