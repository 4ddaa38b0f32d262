#include "engine/notices.h"

#include <fmt/format.h>

namespace oasr::engine {
namespace {

std::string windows(int count) {
  return count == 1 ? "1 window" : fmt::format("{} windows", count);
}

}  // namespace

void Notices::silent_window(double start, double seconds) { silent_.add(start, seconds); }
void Notices::no_speech_window(double start, double seconds) { no_speech_.add(start, seconds); }
void Notices::unheard_window(double start, double seconds) { unheard_.add(start, seconds); }

void Notices::report(Transcript& transcript) const {
  const auto add = [&](const char* kind, std::string message) {
    transcript.warnings.push_back({kind, std::move(message)});
  };
  if (silent_.count > 0) {
    add("no_speech", fmt::format("{} skipped, silent or a steady sound without speech ({:.2f} s, the first at {:.2f} s)",
                                 windows(silent_.count), silent_.seconds, silent_.first));
  }
  if (no_speech_.count > 0) {
    add("no_speech", fmt::format("{} without speech skipped ({:.2f} s, the first at {:.2f} s)",
                                 windows(no_speech_.count), no_speech_.seconds, no_speech_.first));
  }
  if (overloaded_.count > 0) {
    add("audio", fmt::format("the samples reach {:.3g} times full scale (the first at {:.2f} s): float audio "
                             "lies in [-1, 1]; scale it, or what is said may be lost",
                             amplitude_, overloaded_.first));
  }
  if (unheard_.count > 0) {
    add("no_speech",
        fmt::format("{} skipped: the first text failed the thresholds, and voice activity detection "
                    "finds no speech ({:.2f} s, the first at {:.2f} s)",
                    windows(unheard_.count), unheard_.seconds, unheard_.first));
  }
  if (token_limit_.count > 0) {
    add("token_limit",
        fmt::format("{} reached the token limit, the first at {:.2f} s: text may be cut",
                    windows(token_limit_.count), token_limit_.first));
  }
  if (exhausted_.count > 0) {
    add("fallback_exhausted",
        fmt::format(
            "{} failed the thresholds at every temperature, the first at {:.2f} s: the text "
            "of the last one is kept",
            windows(exhausted_.count), exhausted_.first));
  }
  if (transcript.text.empty()) add("empty_result", "the recording gave no text");
}

}  // namespace oasr::engine
