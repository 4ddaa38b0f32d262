#include "engine/admission.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/descriptors.h"

namespace oasr::engine {

std::vector<Admission::Opened> Admission::next(std::size_t wanted, std::size_t open_now) {
  std::vector<Opened> opened;
  while (opened.size() < wanted && (next_ < count_ || !waiting_.empty())) {
    if (callbacks_.cancelled && callbacks_.cancelled()) {
      cancel_rest();
      break;
    }
    const std::vector<std::size_t> chosen = choose(wanted - opened.size());
    const bool others = open_now + opened.size() + chosen.size() > 1;
    auto audio = open_together(chosen, others);
    bool short_of_descriptors = false;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (*audio[i]) {
        opened.push_back({chosen[i], std::move(**audio[i])});
      } else if (others && lacks_descriptor(audio[i]->error())) {
        short_of_descriptors = true;
        waiting_.insert(chosen[i]);
      } else {
        results_.add(chosen[i], unexpected(std::move(*audio[i]).error()));
      }
    }
    if (short_of_descriptors && open_now + opened.size() > 0) break;
  }
  return opened;
}

// The first that waits, else the next ones; they are no longer waiting or next.
std::vector<std::size_t> Admission::choose(std::size_t wanted) {
  std::vector<std::size_t> chosen;
  if (!waiting_.empty()) {
    chosen.push_back(*waiting_.begin());
    waiting_.erase(waiting_.begin());
    return chosen;
  }
  while (chosen.size() < wanted && next_ < count_) chosen.push_back(next_++);
  return chosen;
}

std::vector<Admission::MaybeAudio> Admission::open_together(const std::vector<std::size_t>& chosen, bool others) {
  // Of what is free while recordings are open: their results are files, too.
  const SpareDescriptors spare(others);
  std::vector<MaybeAudio> audio(chosen.size());
  std::atomic<bool> stop = false;  // one that waited, for a pipe, heard that the caller cancels
  const auto open = [&](std::int64_t i, int) {
    auto& result = audio[static_cast<std::size_t>(i)];
    if (stop) {
      result = unexpected(cancelled_error());
      return;
    }
    result = open_(chosen[static_cast<std::size_t>(i)]);
    if (!*result && result->error().code == ErrorCode::cancelled) stop = true;
  };
  chosen.size() == 1 ? open(0, 0) : pool_.parallel_for(static_cast<std::int64_t>(chosen.size()), open);
  return audio;
}

void Admission::cancel_rest() {
  while (next_ < count_ || !waiting_.empty()) {
    for (const std::size_t index : choose(count_)) results_.add(index, unexpected(cancelled_error()));
  }
}

}  // namespace oasr::engine
