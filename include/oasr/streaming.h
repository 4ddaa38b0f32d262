// Streaming recognition with a CTC model: audio in as it comes, text out while it is spoken.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "oasr/options.h"
#include "oasr/recognizer.h"
#include "oasr/result.h"
#include "oasr/stream_events.h"
#include "oasr/transcript.h"

namespace oasr {

// One recording or microphone, decoded while it comes. Samples in pieces of any size give the same events.
// Not thread-safe.
class StreamingRecognizer {
 public:
  // Errors: as Recognizer::load() and transcribe(), and unsupported for a model that can not be cut into
  // chunks (Whisper; a Conformer whose convolutions look ahead).
  static Result<StreamingRecognizer> load(const EngineConfig& config, const TranscribeOptions& options,
                                          const StreamingOptions& streaming = {});
  ~StreamingRecognizer();
  StreamingRecognizer(StreamingRecognizer&&) noexcept;
  StreamingRecognizer& operator=(StreamingRecognizer&&) noexcept;

  using Session = int;
  // A session whose samples are mono at `sample_rate`, Hz; any number may be open.
  Result<Session> open(int sample_rate = 16000);
  // Samples in [-1, 1]. Errors (invalid_argument): a session that is not open or is finished, samples that
  // are not finite.
  Status accept(Session session, std::span<const float> samples);
  Status finish(Session session);
  void close(Session session);

  // Decodes what is complete, of all sessions together; false: more audio is needed first. A failure of memory or of a
  // GPU ends all sessions that are open, as their events say.
  bool step();
  std::vector<StreamEvent> take_events(Session session);

  // Reads a recording or a pipe as it comes, to its end, and gives every event as soon as it is there. Errors:
  // the audio's, `cancelled`, and that of a session that failed. Of the callbacks `cancelled` and `progress`
  // are used.
  Status transcribe(const AudioInput& audio, const std::function<void(const StreamEvent&)>& event,
                    const Callbacks& callbacks = {});

  // A whole recording as samples at the model's rate, for accept(). Errors: the audio's.
  Result<std::vector<float>> read(const AudioInput& audio) const;

  // Bytes that a session holds: keys and values of attention, and all else.
  std::pair<std::size_t, std::size_t> memory(Session session) const;
  int sample_rate() const;  // of the model, Hz
  double chunk_seconds() const;
  // What is loaded and how it runs, as a JSON object.
  std::string report() const;

 private:
  friend struct LoadedFacade;  // oasr's own
  struct Impl;
  explicit StreamingRecognizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace oasr
