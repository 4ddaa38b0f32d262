// The facade: load a model once, transcribe many recordings.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "oasr/options.h"
#include "oasr/result.h"
#include "oasr/transcript.h"

namespace oasr {

struct AudioInput {
  std::string path;                       // a file, or "-" for standard input
  std::span<const float> samples;         // used when path is empty: mono, sample_rate below
  int sample_rate = 16000;
  std::optional<int> channel;             // one channel instead of the mean
  std::string raw_encoding;               // "s16le", …: the file is raw PCM
  int raw_sample_rate = 16000;
  int raw_channels = 1;
};

// Not thread-safe: one call at a time. The weights are shared between copies made by clone().
class Recognizer {
 public:
  static Result<Recognizer> load(const EngineConfig& config);
  ~Recognizer();
  Recognizer(Recognizer&&) noexcept;
  Recognizer& operator=(Recognizer&&) noexcept;

  // One recording of any length.
  Result<Transcript> transcribe(const AudioInput& audio, const TranscribeOptions& options,
                                const Callbacks& callbacks = {});

  // Many recordings, up to config.batch_size decoded together; `done` is called in input order.
  // One bad recording is an Error of its own and stops nothing.
  void transcribe_batch(std::span<const AudioInput> audio, const TranscribeOptions& options,
                        const std::function<void(std::size_t index, Result<Transcript>)>& done,
                        const Callbacks& callbacks = {});

  // What is loaded and how it runs, as JSON text (architecture, dtype, lanes, bytes, notes).
  std::string report() const;

 private:
  struct Impl;
  explicit Recognizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace oasr
