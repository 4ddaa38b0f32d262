// Mono samples in memory as an AudioSource.
#include <fmt/format.h>

#include <algorithm>

#include "audio/audio_source.h"
#include "audio/decoder.h"
#include "audio/mixdown.h"
#include "audio/resampler.h"

namespace oasr {
namespace {

class SamplesSource final : public AudioSource {
 public:
  SamplesSource(std::vector<float> samples, AudioInfo info)
      : samples_(std::move(samples)), info_(std::move(info)) {}

  const AudioInfo& info() const override { return info_; }
  Result<std::size_t> read(std::span<float> out) override {
    const auto count = std::min(out.size(), samples_.size() - position_);
    std::copy_n(samples_.begin() + static_cast<std::ptrdiff_t>(position_), count, out.begin());
    position_ += count;
    return count;
  }
  const std::optional<std::string>& truncated() const override { return truncated_; }
  const std::vector<std::string>& warnings() const override { return warnings_; }
  Status rewind() override {
    position_ = 0;
    return {};
  }
  bool rewindable() const override { return true; }

 private:
  std::vector<float> samples_;
  AudioInfo info_;
  std::size_t position_ = 0;
  std::optional<std::string> truncated_;
  std::vector<std::string> warnings_;
};

}  // namespace

Result<std::unique_ptr<AudioSource>> audio_from_samples(std::vector<float> samples, int sample_rate,
                                                        const AudioOptions& options) {
  auto sane = check_format(sample_rate, 1);
  if (!sane) {
    return unexpected(ErrorCode::invalid_argument,
                      fmt::format("{} Hz is no sample rate of speech", sample_rate));
  }
  AudioInfo info{.container = "memory",
                 .codec = "float",
                 .sample_rate = sample_rate,
                 .channels = 1,
                 .declared_seconds = static_cast<double>(samples.size()) / sample_rate};
  SampleBlock block{.samples = std::move(samples), .channels = 1, .sample_rate = sample_rate};
  std::vector<float> mono;
  TRY(mix_down(block, options.channel, 0, mono));
  if (sample_rate != options.sample_rate) {
    auto resampler = TRY(Resampler::create(sample_rate, options.sample_rate));
    std::vector<float> resampled;
    TRY(resampler.push(mono, resampled));
    TRY(resampler.finish(resampled));
    mono = std::move(resampled);
  }
  return std::unique_ptr<AudioSource>(
      std::make_unique<SamplesSource>(std::move(mono), std::move(info)));
}

}  // namespace oasr
