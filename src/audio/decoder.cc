#include "audio/decoder.h"

#include <fmt/format.h>

namespace oasr {

Status check_format(int sample_rate, int channels) {
  if (sample_rate < kLowestRate || sample_rate > kHighestRate) {
    return unexpected(
        ErrorCode::bad_audio,
        fmt::format("the header declares a sample rate of {} Hz ({} to {} are served)", sample_rate,
                    kLowestRate, kHighestRate));
  }
  if (channels < 1 || channels > kMostChannels) {
    return unexpected(ErrorCode::bad_audio,
                      fmt::format("the header declares {} channels (1 to {} are served)", channels,
                                  kMostChannels));
  }
  return {};
}

std::string seconds_text(std::uint64_t frames, int sample_rate) {
  return fmt::format("{:.3f} s", static_cast<double>(frames) / sample_rate);
}

}  // namespace oasr
