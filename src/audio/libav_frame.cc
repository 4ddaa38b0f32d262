#include "audio/libav_frame.h"

#include <cstring>

extern "C" {
#include <libavutil/frame.h>
#include <libavutil/samplefmt.h>
}

namespace oasr {
namespace {

// One sample as a float; integers are scaled to [-1, 1).
float to_float(std::uint8_t v) { return static_cast<float>(v - 128) / 128.0F; }
float to_float(std::int16_t v) { return static_cast<float>(v) / 32768.0F; }
float to_float(std::int32_t v) { return static_cast<float>(v) / 2147483648.0F; }
float to_float(std::int64_t v) {
  return static_cast<float>(static_cast<double>(v) / 9223372036854775808.0);
}
float to_float(float v) { return v; }
float to_float(double v) { return static_cast<float>(v); }

template <class T>
void copy_samples(const AVFrame& frame, bool planar, SampleBlock& block) {
  const auto channels = static_cast<std::size_t>(block.channels);
  const auto frames = static_cast<std::size_t>(frame.nb_samples);
  block.samples.resize(frames * channels);
  for (std::size_t c = 0; c < (planar ? channels : 1); ++c) {
    const auto* data = frame.extended_data[c];
    const std::size_t count = planar ? frames : frames * channels;
    for (std::size_t i = 0; i < count; ++i) {
      T value;
      std::memcpy(&value, data + i * sizeof(T), sizeof(T));
      block.samples[planar ? i * channels + c : i] = to_float(value);
    }
  }
}

}  // namespace

Status copy_frame(const AVFrame& frame, SampleBlock& block) {
  block.channels = frame.ch_layout.nb_channels;
  block.sample_rate = frame.sample_rate;
  TRY(check_format(block.sample_rate, block.channels));
  const auto format = static_cast<AVSampleFormat>(frame.format);
  const bool planar = av_sample_fmt_is_planar(format) != 0;
  switch (av_get_packed_sample_fmt(format)) {
    case AV_SAMPLE_FMT_U8:
      return copy_samples<std::uint8_t>(frame, planar, block), Status();
    case AV_SAMPLE_FMT_S16:
      return copy_samples<std::int16_t>(frame, planar, block), Status();
    case AV_SAMPLE_FMT_S32:
      return copy_samples<std::int32_t>(frame, planar, block), Status();
    case AV_SAMPLE_FMT_S64:
      return copy_samples<std::int64_t>(frame, planar, block), Status();
    case AV_SAMPLE_FMT_FLT:
      return copy_samples<float>(frame, planar, block), Status();
    case AV_SAMPLE_FMT_DBL:
      return copy_samples<double>(frame, planar, block), Status();
    default:
      break;
  }
  return unexpected(ErrorCode::unsupported, "the decoder gives an unknown sample format");
}

}  // namespace oasr
