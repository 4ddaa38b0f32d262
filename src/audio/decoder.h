// What the decoding libraries have in common: blocks of interleaved float samples.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "audio/audio_source.h"
#include "audio/byte_source.h"
#include "base/result.h"

namespace oasr {

// Rates and channel counts outside are taken for a broken header.
inline constexpr int kLowestRate = 1'000;
inline constexpr int kHighestRate = 768'000;
inline constexpr int kMostChannels = 256;

// Integers are scaled by 2^-(bits-1); interleaved, [frames, channels].
struct SampleBlock {
  std::vector<float> samples;
  int channels = 0;
  int sample_rate = 0;
};

class Decoder {
 public:
  virtual ~Decoder() = default;

  virtual const AudioInfo& info() const = 0;

  // The next block, with at least one frame, into `block` (its storage is used again); false at the
  // end. Damage after the first sample is skipped or ends the stream, and sets truncated().
  virtual Result<bool> next(SampleBlock& block) = 0;

  const std::optional<std::string>& truncated() const { return truncated_; }
  const std::vector<std::string>& warnings() const { return warnings_; }
  void warn(std::string text) { warnings_.push_back(std::move(text)); }

 protected:
  std::optional<std::string> truncated_;
  std::vector<std::string> warnings_;
};

// FFmpeg's libraries. `bytes` must outlive the decoder and stand at its start.
Result<std::unique_ptr<Decoder>> open_libav(ByteSource& bytes, const std::optional<RawFormat>& raw);

// libsndfile. `bytes` must outlive the decoder, stand at its start and have a size.
// `declared_frames`: what the header says where libsndfile would report what is there instead.
Result<std::unique_ptr<Decoder>> open_sndfile(ByteSource& bytes,
                                              std::optional<std::uint64_t> declared_frames = {});

// An error if a header's numbers are absurd.
Status check_format(int sample_rate, int channels);

// "12.345 s".
std::string seconds_text(std::uint64_t frames, int sample_rate);

}  // namespace oasr
