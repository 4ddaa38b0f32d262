// WAV files for tests, written byte by byte so that they can be as wrong as needed.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numbers>
#include <span>
#include <string>
#include <vector>

namespace oasr::testing {

// `size` low bytes of `value`, in either order.
inline std::string integer(std::uint64_t value, int size, bool big_endian = false) {
  std::string bytes;
  for (int i = 0; i < size; ++i) {
    const int shift = 8 * (big_endian ? size - 1 - i : i);
    bytes += static_cast<char>(value >> shift & 0xFF);
  }
  return bytes;
}

inline std::string real32(float value) { return integer(std::bit_cast<std::uint32_t>(value), 4); }
inline std::string real64(double value) { return integer(std::bit_cast<std::uint64_t>(value), 8); }

inline std::string int16_bytes(std::span<const std::int16_t> values, bool big_endian = false) {
  std::string bytes;
  for (const auto value : values)
    bytes += integer(static_cast<std::uint16_t>(value), 2, big_endian);
  return bytes;
}

// A chunk with the padding byte that an odd size asks for.
inline std::string chunk(const std::string& id, const std::string& body) {
  return id + integer(body.size(), 4) + body + (body.size() % 2 != 0 ? std::string(1, '\0') : "");
}

struct Format {
  int tag = 1;
  int channels = 1;
  int sample_rate = 16000;
  int bits = 16;
};

inline std::string format_body(const Format& format) {
  const int align = (format.bits + 7) / 8 * format.channels;
  return integer(static_cast<unsigned>(format.tag), 2) +
         integer(static_cast<unsigned>(format.channels), 2) +
         integer(static_cast<unsigned>(format.sample_rate), 4) +
         integer(static_cast<unsigned>(format.sample_rate) * static_cast<unsigned>(align), 4) +
         integer(static_cast<unsigned>(align), 2) + integer(static_cast<unsigned>(format.bits), 2);
}

inline std::string riff(const std::string& chunks) {
  return "RIFF" + integer(4 + chunks.size(), 4) + "WAVE" + chunks;
}

inline std::string wav(const Format& format, const std::string& data) {
  return riff(chunk("fmt ", format_body(format)) + chunk("data", data));
}

// A WAV whose data chunk declares `declared` bytes.
inline std::string wav_declaring(std::uint32_t declared, const std::string& data) {
  return riff(chunk("fmt ", format_body({})) + "data" + integer(declared, 4) + data);
}

// `count` samples that differ from their neighbours and cover the range.
inline std::vector<std::int16_t> ramp(std::size_t count) {
  std::vector<std::int16_t> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<std::int16_t>(i * 7919 - 32768);
  return values;
}

inline std::vector<float> as_floats(std::span<const std::int16_t> values) {
  std::vector<float> floats;
  for (const auto value : values) floats.push_back(static_cast<float>(value) / 32768.0F);
  return floats;
}

// A sine of `hertz`, amplitude 0.5.
inline std::vector<float> tone(double hertz, int sample_rate, std::size_t count) {
  std::vector<float> samples(count);
  for (std::size_t i = 0; i < count; ++i) {
    samples[i] = static_cast<float>(
        0.5 * std::sin(2 * std::numbers::pi * hertz * static_cast<double>(i) / sample_rate));
  }
  return samples;
}

inline std::span<const std::byte> as_span(const std::string& bytes) {
  return std::as_bytes(std::span(bytes));
}

}  // namespace oasr::testing
