#include "audio/mixdown.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

namespace oasr {
namespace {

std::string fault_of(float sample) {
  if (std::isnan(sample)) return "not a number";
  if (std::isinf(sample)) return "infinite";
  return fmt::format("{:g}, which is beyond what speech is recognised in ({:g})", sample, kLoudest);
}

Unexpected not_usable(const SampleBlock& block, std::size_t index, std::uint64_t first_frame) {
  const auto channels = static_cast<std::size_t>(block.channels);
  const auto frame = first_frame + index / channels;
  return unexpected(ErrorCode::bad_audio,
                    fmt::format("sample {} ({}) of channel {} is {}", frame,
                                seconds_text(frame, block.sample_rate), index % channels,
                                fault_of(block.samples[index])),
                    {}, "repair the float samples, or convert them to integers");
}

}  // namespace

Status mix_down(const SampleBlock& block, std::optional<int> channel, std::uint64_t first_frame,
                std::vector<float>& mono) {
  if (channel && (*channel < 0 || *channel >= block.channels)) {
    return unexpected(ErrorCode::invalid_argument,
                      fmt::format("there is no channel {}: the audio has {} (counted from 0)",
                                  *channel, block.channels));
  }
  const auto channels = static_cast<std::size_t>(block.channels);
  const auto frames = block.samples.size() / channels;
  mono.resize(frames);
  if (channel || channels == 1) {
    const auto first = static_cast<std::size_t>(channel.value_or(0));
    for (std::size_t frame = 0; frame < frames; ++frame) {
      const auto index = frame * channels + first;
      if (!usable_sample(block.samples[index])) return not_usable(block, index, first_frame);
      mono[frame] = block.samples[index];
    }
    return {};
  }
  for (std::size_t frame = 0; frame < frames; ++frame) {
    double sum = 0;
    for (std::size_t c = 0; c < channels; ++c) {
      const auto index = frame * channels + c;
      if (!usable_sample(block.samples[index])) return not_usable(block, index, first_frame);
      sum += static_cast<double>(block.samples[index]);
    }
    mono[frame] = static_cast<float>(sum / static_cast<double>(channels));
  }
  return {};
}

}  // namespace oasr
