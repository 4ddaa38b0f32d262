// The engine: recordings in, transcripts out, over a model of any decode family.
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

// Where the time went, of families that measure it themselves: wall seconds.
struct StageTimes {
  double features = 0;   // front end; on a GPU beside the others, on threads of its own
  double encode = 0;
  double search = 0;     // over the encoder's scores
  double rescore = 0;    // by attention decoders
  std::int64_t frames = 0;      // encoder frames
  std::int64_t utterances = 0;
  std::int64_t searched_on_gpu = 0;  // of them, by its prefix beam search; the others' searches ran on the processor
};

// Transcribes recordings of any length in bounded memory. Up to `batch_size` recordings are decoded
// together; a transcript does not depend on what is decoded beside it (the same bits as alone).
// Not thread-safe: one call at a time.
class Transcriber {
 public:
  // The transcriber of the model's decode family, which reads ahead where a GPU computes. batch_size is 1 to 256. The context's pool must outlive
  // it. Errors: invalid_argument, unsupported (a family that no engine serves).
  static Result<std::unique_ptr<Transcriber>> create(std::shared_ptr<const models::SpeechModel> model,
                                                     ExecContext context, int batch_size = 1);
  virtual ~Transcriber() = default;

  // One mono recording at the model's rate, from where `audio` stands. Errors: invalid_argument (options,
  // also those that the family does not have), bad_audio, cancelled, and what the source says.
  virtual Result<Transcript> transcribe(AudioSource& audio, const TranscribeOptions& options,
                                        const Callbacks& callbacks = {}) = 0;

  // Opens recording `index`; called when its turn comes, so that few files are open at a time, by several threads
  // at once.
  using OpenAudio = std::function<Result<std::unique_ptr<AudioSource>>(std::size_t index)>;
  // Called once for every index, in rising order.
  using Done = std::function<void(std::size_t index, Result<Transcript> transcript)>;

  // Recordings 0 … count - 1, up to `batch_size` at a time. A bad recording is an Error of its own
  // and stops nothing. Of the callbacks, `cancelled` stops all (the rest are Errors `cancelled`)
  // and `progress` gives the seconds of audio done in all recordings, total 0; `segment` is used
  // only when count is 1, since it does not say which recording it is.
  virtual void transcribe_many(std::size_t count, const OpenAudio& open, const TranscribeOptions& options,
                               const Callbacks& callbacks, const Done& done) = 0;

  // The options with the values that the family and the model give to those that are not set: as they are
  // used. What can not be served is left as it is.
  virtual TranscribeOptions resolved(const TranscribeOptions& options) const = 0;

  virtual StageTimes stage_times() const { return {}; }
};

// The rate that a model's recordings must have, Hz.
int sample_rate_of(const models::SpeechModel& model);

}  // namespace oasr::engine
