#include "api/open_input.h"

namespace oasr {

Result<std::unique_ptr<AudioSource>> open_input(const AudioInput& input, int sample_rate,
                                                const Callbacks& callbacks) {
  AudioOptions options;
  options.sample_rate = sample_rate;
  options.cancelled = callbacks.cancelled;
  options.channel = input.channel;
  if (!input.raw_encoding.empty()) {
    options.raw = RawFormat{input.raw_encoding, input.raw_sample_rate, input.raw_channels};
  }
  if (!input.path.empty()) return open_audio(input.path, options);
  return audio_from_samples({input.samples.begin(), input.samples.end()}, input.sample_rate,
                            options);
}

}  // namespace oasr
