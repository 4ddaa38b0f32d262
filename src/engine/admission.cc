#include "engine/admission.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace oasr::engine {

std::vector<Admission::Opened> Admission::next(std::size_t wanted) {
  std::vector<Opened> opened;
  while (opened.size() < wanted && next_ < count_) {
    if (callbacks_.cancelled && callbacks_.cancelled()) {
      while (next_ < count_) results_.add(next_++, unexpected(cancelled_error()));
      break;
    }
    const std::size_t first = next_, some = std::min(wanted - opened.size(), count_ - first);
    std::vector<std::optional<Result<std::unique_ptr<AudioSource>>>> audio(some);
    std::atomic<bool> stop = false;  // one that waited, for a pipe, heard that the caller cancels
    const auto open = [&](std::int64_t i, int) {
      auto& result = audio[static_cast<std::size_t>(i)];
      if (stop) {
        result = unexpected(cancelled_error());
        return;
      }
      result = open_(first + static_cast<std::size_t>(i));
      if (!*result && result->error().code == ErrorCode::cancelled) stop = true;
    };
    some == 1 ? open(0, 0) : pool_.parallel_for(static_cast<std::int64_t>(some), open);
    next_ += some;
    for (std::size_t i = 0; i < some; ++i) {
      if (*audio[i]) {
        opened.push_back({first + i, std::move(**audio[i])});
      } else {
        results_.add(first + i, unexpected(std::move(*audio[i]).error()));
      }
    }
  }
  return opened;
}

}  // namespace oasr::engine
