// The facade: load a model once, transcribe many recordings.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "oasr/options.h"
#include "oasr/result.h"
#include "oasr/transcript.h"

namespace oasr {

// One recording: a file, standard input, or samples in memory.
struct AudioInput {
  std::string path;                // a file, or "-" for standard input
  std::span<const float> samples;  // used when path is empty: mono, borrowed during the call
  int sample_rate = 16000;         // of `samples`, Hz
  std::optional<int> channel;      // one channel of the file (0-based) instead of their mean
  std::string raw_encoding;        // "s16le", "f32le", "mulaw", …: the file is raw PCM
  int raw_sample_rate = 16000;     // of raw PCM, Hz
  int raw_channels = 1;            // of raw PCM
};

// Where the time went since load(): wall seconds.
struct Timings {
  double load_seconds = 0;
  double encode_seconds = 0;       // encoder and cross-attention keys and values
  std::int64_t windows = 0;        // encoded
  double prompt_seconds = 0;       // decoder calls of more than one token a row
  std::int64_t prompts = 0;
  double step_seconds = 0;         // decoder calls of one token a row
  std::int64_t steps = 0;          // those calls
  std::int64_t step_rows = 0;      // tokens scored in them, all rows
};

// Not thread-safe: one call at a time. Clones may run side by side: they share the weights.
class Recognizer {
 public:
  // Errors: not_found and network (the model), bad_checkpoint, unsupported, invalid_argument.
  static Result<Recognizer> load(const EngineConfig& config);

  ~Recognizer();
  Recognizer(Recognizer&&) noexcept;
  Recognizer& operator=(Recognizer&&) noexcept;

  // A recognizer of its own threads and decoder state over the same weights.
  Result<Recognizer> clone() const;

  // One recording of any length, in bounded memory. Errors: bad_audio, io, not_found (the audio),
  // invalid_argument (options), cancelled.
  Result<Transcript> transcribe(const AudioInput& audio, const TranscribeOptions& options,
                                const Callbacks& callbacks = {});

  // Many recordings, up to config.batch_size decoded together; `done` is called in input order,
  // once each. One bad recording is an Error of its own and stops nothing. Callbacks::segment is
  // not called when there are several; Callbacks::progress counts the seconds of all.
  void transcribe_batch(std::span<const AudioInput> audio, const TranscribeOptions& options,
                        const std::function<void(std::size_t index, Result<Transcript>)>& done,
                        const Callbacks& callbacks = {});

  Timings timings() const;

  // What is loaded and how it runs, as a JSON object (architecture, dtype, lanes, threads, notes).
  std::string report() const;

 private:
  struct Impl;
  explicit Recognizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace oasr
