// Streaming recognition: sessions that take audio as it comes, many of them in one pass.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "decode/endpoint.h"
#include "device/thread_pool.h"
#include "engine/ctc_plan.h"
#include "oasr/stream_events.h"
#include "oasr/transcript.h"

namespace oasr::engine {

// Sessions over one model. Audio in pieces of any size gives the same events; a session's events do not
// depend on the others. Not thread-safe.
class StreamingSessions {
 public:
  // Errors: what make_ctc_plan() says, a model that can not be cut into chunks (unsupported), endpoint rules
  // that make no sense. Without a chunk size kStreamingChunkSize is taken. The pool must outlive the sessions.
  static Result<std::unique_ptr<StreamingSessions>> create(std::shared_ptr<const models::CtcModel> model,
                                                           const TranscribeOptions& options,
                                                           const StreamingOptions& streaming, ExecContext context);
  ~StreamingSessions();

  using SessionId = int;
  // Audio of any rate that resampling serves, Hz.
  Result<SessionId> open(int sample_rate);
  // Errors: a session that is not open, was finished or has failed (invalid_argument); samples that are not
  // finite (bad_audio).
  Status accept(SessionId session, std::span<const float> samples);
  Status finish(SessionId session);
  // Gives up a session at any time.
  void close(SessionId session);

  // Whether step() would compute something.
  bool ready() const;
  // Advances every session that has a chunk's audio by one chunk, in one pass. Afterwards their events are
  // there. What it throws (a GPU that fails, lack of memory) has ended all sessions that were open, with an event.
  void step();

  // Events since the last call, in order. After finish() the last one is `done`, when all audio is decoded.
  std::vector<StreamEvent> take_events(SessionId session);

  double chunk_seconds() const;  // of audio between two steps of a session
  models::CtcState::Memory memory(SessionId session) const;

 private:
  struct Impl;
  explicit StreamingSessions(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace oasr::engine
