#include "engine/admission.h"

#include <algorithm>
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
    const auto open = [&](std::int64_t i, int) {
      const auto at = static_cast<std::size_t>(i);
      audio[at] = open_(first + at);
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
