// Results of many recordings, given out in the order of the recordings.
#pragma once

#include <cstddef>
#include <map>
#include <utility>

#include "engine/transcriber.h"

namespace oasr::engine {

inline Error cancelled_error() {
  return {ErrorCode::cancelled, "the transcription was cancelled", {}, {}};
}

// Gives results out in rising order of their index.
class InOrder {
 public:
  explicit InOrder(const Transcriber::Done& done) : done_(done) {}

  void add(std::size_t index, Result<Transcript> result) {
    waiting_.emplace(index, std::move(result));
    for (auto next = waiting_.find(next_); next != waiting_.end(); next = waiting_.find(next_)) {
      done_(next_++, std::move(next->second));
      waiting_.erase(next);
    }
  }

 private:
  const Transcriber::Done& done_;
  std::map<std::size_t, Result<Transcript>> waiting_;
  std::size_t next_ = 0;
};

}  // namespace oasr::engine
