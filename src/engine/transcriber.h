// The engine: recordings in, transcripts out, over any attention encoder-decoder.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "audio/audio_source.h"
#include "base/result.h"
#include "device/thread_pool.h"
#include "models/speech_model.h"
#include "oasr/options.h"
#include "oasr/transcript.h"

namespace oasr::engine {

// Transcribes recordings of any length in bounded memory. Up to `batch_size` recordings are decoded
// together; a transcript does not depend on what is decoded beside it (the same bits as alone).
// Not thread-safe: one call at a time. The decoder state is created by the first call and kept.
class Transcriber {
 public:
  // batch_size >= 1. The context's pool must outlive the transcriber.
  static Result<std::unique_ptr<Transcriber>> create(std::shared_ptr<const models::AedModel> model,
                                                     ExecContext context, int batch_size = 1);
  ~Transcriber();

  // One recording at 16 kHz mono, from where `audio` stands. Rewindable sources are read twice
  // when they are longer than two minutes. Errors: invalid_argument (options), bad_audio,
  // cancelled, and what the source says.
  Result<Transcript> transcribe(AudioSource& audio, const TranscribeOptions& options,
                                const Callbacks& callbacks = {});

  // Opens recording `index`; called when its turn comes, so that few files are open at a time.
  using OpenAudio = std::function<Result<std::unique_ptr<AudioSource>>(std::size_t index)>;
  // Called once for every index, in rising order.
  using Done = std::function<void(std::size_t index, Result<Transcript> transcript)>;

  // Recordings 0 … count - 1, up to `batch_size` at a time. A bad recording is an Error of its own
  // and stops nothing. Of the callbacks, `cancelled` stops all (the rest are Errors `cancelled`)
  // and `progress` gives the seconds of audio done in all recordings, total 0; `segment` is used
  // only when count is 1, since it does not say which recording it is.
  void transcribe_many(std::size_t count, const OpenAudio& open, const TranscribeOptions& options,
                       const Callbacks& callbacks, const Done& done);

 private:
  struct Impl;
  explicit Transcriber(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace oasr::engine
