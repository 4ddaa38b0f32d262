// One recording on its way through a CTC model.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/ctc_search.h"
#include "engine/utterance_source.h"
#include "oasr/transcript.h"

namespace oasr::engine {

// An utterance with its features, and its place in the recording.
struct CtcUtterance {
  std::vector<float> features;      // [n, input_dim], n > 0
  double offset = 0, duration = 0;  // seconds
  double recording_seconds = 0;     // as declared; 0: not known
};

// Gives utterances one at a time and takes their texts.
class CtcRecording {
 public:
  // All must outlive the recording; `callbacks` are called from take(). front_end: null for the processor.
  CtcRecording(const CtcPlan& plan, AudioSource& audio, const Callbacks& callbacks, MelDevice* front_end,
               ThreadPool& pool);

  // The next utterance; nothing at the end. After an error, or the end, it is not called again. It may run in another
  // thread, beside take() and fail() of the utterance before.
  Result<std::optional<CtcUtterance>> next();
  // The results of an utterance, best first.
  void take(const CtcUtterance& utterance, const std::vector<CtcResult>& results);
  // Ends the recording with an error: its result.
  void fail(Error error) { error_ = std::move(error); }
  bool has_failed() const { return error_.has_value(); }

  // After fail(), or when next() gave nothing and all was taken; once.
  Result<Transcript> take_result();

 private:
  void finish();

  const CtcPlan& plan_;
  AudioSource& audio_;
  const Callbacks& callbacks_;
  MelDevice* front_end_;
  UtteranceSource utterances_;
  int taken_ = 0;  // utterances
  Transcript transcript_;
  std::optional<Error> error_;
};

}  // namespace oasr::engine
