// The engine for models with a CTC head (WeNet's U2 and U2++), whole utterances.
#pragma once

#include <memory>

#include "engine/transcriber.h"

namespace oasr::engine {

// Recordings of up to a minute are one utterance; longer ones are cut at pauses (utterance_source.h), which a
// warning `cut_at_pauses` says. Utterances of up to `batch_size` recordings go through the model in one pass, in parts where
// memory does not hold them all. `reads_ahead`: those of the next pass are read meanwhile, by one thread less than the
// context's pool has, if that has more than one.
class CtcTranscriber final : public Transcriber {
 public:
  static Result<std::unique_ptr<Transcriber>> create(std::shared_ptr<const models::CtcModel> model,
                                                     ExecContext context, int batch_size, bool reads_ahead);
  ~CtcTranscriber() override;

  Result<Transcript> transcribe(AudioSource& audio, const TranscribeOptions& options,
                                const Callbacks& callbacks = {}) override;
  void transcribe_many(std::size_t count, const OpenAudio& open, const TranscribeOptions& options,
                       const Callbacks& callbacks, const Done& done) override;
  TranscribeOptions resolved(const TranscribeOptions& options) const override;
  StageTimes stage_times() const override;

 private:
  struct Impl;
  explicit CtcTranscriber(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace oasr::engine
