#include "audio/stream_end.h"

#include <bit>
#include <string_view>

namespace oasr {
namespace {

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::uint64_t byte_at(std::span<const std::byte> bytes, std::size_t at) {
  return std::to_integer<std::uint64_t>(bytes[at]);
}

// An EBML size and the bytes it takes; nothing if cut. All value bits set means "unknown".
struct EbmlSize {
  std::uint64_t value = 0;
  std::size_t length = 0;
  bool unknown = false;
};
std::optional<EbmlSize> ebml_size(std::span<const std::byte> bytes) {
  if (bytes.empty() || bytes[0] == std::byte{0}) return std::nullopt;
  const auto first = std::to_integer<std::uint8_t>(bytes[0]);
  const auto length = static_cast<std::size_t>(std::countl_zero(first)) + 1;
  if (bytes.size() < length) return std::nullopt;
  auto value = byte_at(bytes, 0) & (0xFFU >> length);
  for (std::size_t i = 1; i < length; ++i) value = value << 8 | byte_at(bytes, i);
  const auto all_ones = (std::uint64_t{1} << (7 * length)) - 1;
  return EbmlSize{value, length, value == all_ones};
}

std::optional<std::uint64_t> matroska_bytes(std::span<const std::byte> head) {
  const auto header = ebml_size(head.subspan(4));
  if (!header || header->unknown || header->value > head.size()) return std::nullopt;
  const auto segment = 4 + header->length + static_cast<std::size_t>(header->value);
  if (segment + 4 >= head.size() || as_text(head.subspan(segment, 4)) != "\x18\x53\x80\x67") {
    return std::nullopt;
  }
  const auto size = ebml_size(head.subspan(segment + 4));
  if (!size || size->unknown) return std::nullopt;
  return segment + 4 + size->length + size->value;
}

}  // namespace

std::optional<std::uint64_t> declared_file_bytes(std::span<const std::byte> head) {
  if (head.size() < 12) return std::nullopt;
  const auto start = as_text(head);
  if (start.substr(0, 4) == "\x1A\x45\xDF\xA3") return matroska_bytes(head);
  const auto form = start.substr(8, 4);
  if (start.substr(0, 4) == "RIFF" && (form == "AVI " || form == "WAVE")) {
    std::uint64_t size = 0;
    for (std::size_t i = 8; i-- > 4;) size = size << 8 | byte_at(head, i);
    if (size == 0 || size >= 0x7FFFF000) return std::nullopt;  // left open, or beyond 32 bits
    return 8 + size;
  }
  return std::nullopt;
}

OggEnd ogg_end(std::span<const std::byte> tail) {
  const auto page = as_text(tail).rfind("OggS");
  if (page == std::string_view::npos || page + 27 > tail.size()) return OggEnd::cut;
  const auto segments = byte_at(tail, page + 26);
  auto length = 27 + segments;
  if (page + length > tail.size()) return OggEnd::cut;
  for (std::size_t i = 0; i < segments; ++i) length += byte_at(tail, page + 27 + i);
  if (page + length > tail.size()) return OggEnd::cut;
  return (byte_at(tail, page + 5) & 4) != 0 ? OggEnd::marked : OggEnd::unmarked;
}

std::optional<std::size_t> mp3_frame_bytes(std::span<const std::byte> packet) {
  // kbit/s by the index in the header: MPEG 1, then MPEG 2 and 2.5.
  static constexpr int kBitrates[2][16] = {
      {0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 0},
      {0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0}};
  static constexpr int kRates[4] = {44100, 48000, 32000, 0};
  if (packet.size() < 4 || byte_at(packet, 0) != 0xFF || byte_at(packet, 1) < 0xE0)
    return std::nullopt;
  const auto version = byte_at(packet, 1) >> 3 & 3;  // 0: 2.5, 2: 2, 3: 1
  const auto layer = byte_at(packet, 1) >> 1 & 3;    // 1: III
  if (version == 1 || layer != 1) return std::nullopt;
  const int bitrate = kBitrates[version == 3 ? 0 : 1][byte_at(packet, 2) >> 4] * 1000;
  const int rate = kRates[byte_at(packet, 2) >> 2 & 3] / (version == 3 ? 1 : version == 2 ? 2 : 4);
  if (bitrate == 0 || rate == 0) return std::nullopt;
  const auto padding = static_cast<int>(byte_at(packet, 2) >> 1 & 1);
  return static_cast<std::size_t>((version == 3 ? 144 : 72) * bitrate / rate + padding);
}

}  // namespace oasr
