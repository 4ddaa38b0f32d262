// The recordings of a batch, opened as their turn comes.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "device/thread_pool.h"
#include "engine/in_order.h"
#include "engine/transcriber.h"

namespace oasr::engine {

// Recordings 0 … count - 1 in rising order. Those that can not be opened, and all that are left once the caller
// cancels, are results. One that finds no file descriptor because of the others waits until some of them are over.
class Admission {
 public:
  struct Opened {
    std::size_t index;
    std::unique_ptr<AudioSource> audio;
  };

  Admission(std::size_t count, const Transcriber::OpenAudio& open, const Callbacks& callbacks, ThreadPool& pool,
            InOrder& results)
      : count_(count), open_(open), callbacks_(callbacks), pool_(pool), results_(results) {}

  // The next `wanted`, opened side by side on all threads; fewer at the end, and where file descriptors are short.
  // `open_now`: those of before that are not over.
  std::vector<Opened> next(std::size_t wanted, std::size_t open_now);

 private:
  using MaybeAudio = std::optional<Result<std::unique_ptr<AudioSource>>>;
  std::vector<std::size_t> choose(std::size_t wanted);
  std::vector<MaybeAudio> open_together(const std::vector<std::size_t>& chosen, bool others);
  void cancel_rest();

  std::size_t count_, next_ = 0;
  std::set<std::size_t> waiting_;  // before next_: for a descriptor
  const Transcriber::OpenAudio& open_;
  const Callbacks& callbacks_;
  ThreadPool& pool_;
  InOrder& results_;
};

}  // namespace oasr::engine
