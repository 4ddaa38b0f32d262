// The engine for attention encoder-decoders over fixed windows (Whisper).
#pragma once

#include <memory>

#include "engine/transcriber.h"

namespace oasr::engine {

// The decoder state is created by the first call and kept. `reads_ahead`: recordings that come next are read while others are
// decoded, by one thread less than the context's pool has, if that has more than one.
class AedTranscriber final : public Transcriber {
 public:
  static Result<std::unique_ptr<Transcriber>> create(std::shared_ptr<const models::AedModel> model, ExecContext context,
                                             int batch_size, bool reads_ahead);
  ~AedTranscriber() override;

  // Rewindable sources are read twice when they are longer than two minutes.
  Result<Transcript> transcribe(AudioSource& audio, const TranscribeOptions& options,
                                const Callbacks& callbacks = {}) override;
  void transcribe_many(std::size_t count, const OpenAudio& open, const TranscribeOptions& options,
                       const Callbacks& callbacks, const Done& done) override;
  TranscribeOptions resolved(const TranscribeOptions& options) const override;

 private:
  struct Impl;
  explicit AedTranscriber(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace oasr::engine
