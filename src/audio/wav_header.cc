#include "audio/wav_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <string>
#include <string_view>

#include "audio/decoder.h"

namespace oasr {
namespace {

constexpr int kExtensible = 0xFFFE;
constexpr int kMostChunks = 10'000;

// Fields of a chunk, in the byte order of the file.
class Fields {
 public:
  Fields(std::span<const std::byte> bytes, bool big_endian) : bytes_(bytes), big_(big_endian) {}

  std::uint64_t number(std::size_t offset, std::size_t size) const {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const auto at = offset + (big_ ? i : size - 1 - i);
      value = value << 8 | std::to_integer<std::uint64_t>(bytes_[at]);
    }
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  bool big_;
};

struct Chunk {
  std::string id;
  std::uint64_t size = 0;
};

std::string text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Result<std::optional<Chunk>> chunk_at(ByteSource& bytes, std::uint64_t offset, bool big_endian) {
  std::array<std::byte, 8> head{};
  const auto count = TRY(bytes.peek(offset, head));
  if (count < head.size()) return std::optional<Chunk>();
  return std::optional<Chunk>(
      Chunk{text(std::span(head).first(4)), Fields(head, big_endian).number(4, 4)});
}

// Whether a chunk follows an odd one at once, without the padding byte that `offset` allows for.
Result<bool> is_unpadded(ByteSource& bytes, std::uint64_t offset, bool big_endian) {
  static constexpr std::string_view kUsual[] = {"fmt ", "data", "LIST", "fact"};
  const auto is_usual = [](const std::optional<Chunk>& chunk) {
    return chunk && std::find(std::begin(kUsual), std::end(kUsual), chunk->id) != std::end(kUsual);
  };
  if (is_usual(TRY(chunk_at(bytes, offset, big_endian)))) return false;
  return is_usual(TRY(chunk_at(bytes, offset - 1, big_endian)));
}

bool is_chunk_id(std::string_view id) {
  return std::all_of(id.begin(), id.end(), [](unsigned char c) { return std::isprint(c) != 0; });
}

// Writers that can not seek back leave one of these as the size of the data chunk.
bool is_placeholder(std::uint64_t size) {
  return size == 0 || (size >= 0x7FFFF000 && size <= 0x80000000) ||
         (size >= 0xFFFFF000 && size <= 0xFFFFFFFF);
}

Status read_format(ByteSource& bytes, std::uint64_t offset, std::uint64_t size, bool big_endian,
                   WavHeader& header) {
  std::array<std::byte, 40> raw{};
  const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(size, raw.size()));
  const auto count = TRY(bytes.peek(offset, std::span(raw).first(wanted)));
  if (count < 14) {
    return unexpected(ErrorCode::bad_audio,
                      fmt::format("the WAV fmt chunk has {} bytes; it needs 16", count));
  }
  const Fields fields(raw, big_endian);
  header.format_tag = static_cast<int>(fields.number(0, 2));
  header.channels = static_cast<int>(fields.number(2, 2));
  const auto rate = fields.number(4, 4);
  header.block_align = static_cast<int>(fields.number(12, 2));
  if (count >= 16) header.bits = static_cast<int>(fields.number(14, 2));
  if (header.format_tag == kExtensible && count >= 26) {
    header.format_tag = static_cast<int>(fields.number(24, 2));
  }
  header.sample_rate = static_cast<int>(std::min<std::uint64_t>(rate, INT32_MAX));
  TRY(check_format(header.sample_rate, header.channels));
  const auto bytes_a_sample = (header.bits + 7) / 8;
  if (header.is_pcm() && (header.bits < 1 || header.bits > 64 ||
                          header.block_align != bytes_a_sample * header.channels)) {
    return unexpected(
        ErrorCode::bad_audio,
        fmt::format("the WAV header contradicts itself: {} bits, {} channels, {} bytes "
                    "a frame",
                    header.bits, header.channels, header.block_align));
  }
  return {};
}

// Whether the bytes from `offset` on are chunks that end where the file ends: then a data chunk of
// size 0 is really empty.
Result<bool> only_chunks_follow(ByteSource& bytes, std::uint64_t offset, bool big_endian) {
  if (!bytes.size()) return false;
  for (int i = 0; i < kMostChunks; ++i) {
    if (offset >= *bytes.size()) return true;
    const auto chunk = TRY(chunk_at(bytes, offset, big_endian));
    if (!chunk || !is_chunk_id(chunk->id)) return false;
    offset += 8 + chunk->size + (chunk->size & 1);
    if (offset > *bytes.size() + 1) return false;
  }
  return false;
}

Unexpected missing(std::string_view chunk, std::uint64_t offset) {
  return unexpected(
      ErrorCode::bad_audio,
      fmt::format("the WAV file has no {} chunk: no chunk starts at byte {}", chunk, offset));
}

}  // namespace

std::optional<std::uint64_t> WavHeader::frames() const {
  if (empty) return 0;
  if (!is_pcm() || !data_bytes) return std::nullopt;
  return *data_bytes / static_cast<std::uint64_t>(block_align);
}

Result<std::optional<WavHeader>> read_wav_header(ByteSource& bytes) {
  std::array<std::byte, 12> head{};
  const auto count = TRY(bytes.peek(0, head));
  const auto riff = text(std::span(head).first(4));
  if (count < head.size() || text(std::span(head).last(4)) != "WAVE" ||
      (riff != "RIFF" && riff != "RIFX" && riff != "RF64" && riff != "BW64")) {
    return std::optional<WavHeader>();
  }
  const bool big_endian = riff == "RIFX";
  WavHeader header;
  header.big_endian = big_endian;
  std::optional<std::uint64_t> long_size;  // of the data, from ds64
  bool has_format = false;
  std::uint64_t offset = head.size();
  for (int i = 0; i < kMostChunks; ++i) {
    const auto chunk = TRY(chunk_at(bytes, offset, big_endian));
    if (!chunk) {
      if (!bytes.size() && offset + 8 > ByteSource::kPipePrefix) return std::optional<WavHeader>();
      return missing(has_format ? "data" : "fmt", offset);
    }
    const auto body = offset + 8;
    if (chunk->id == "fmt ") {
      TRY(read_format(bytes, body, chunk->size, big_endian, header));
      has_format = true;
    } else if (chunk->id == "ds64") {
      std::array<std::byte, 16> sizes{};
      if (TRY(bytes.peek(body, sizes)) == sizes.size())
        long_size = Fields(sizes, false).number(8, 8);
    } else if (chunk->id == "data") {
      if (!has_format) return missing("fmt", offset);
      header.data_offset = body;
      header.data_bytes = chunk->size;
      if (chunk->size == 0xFFFFFFFF && long_size) header.data_bytes = long_size;
      if (chunk->size == 0) header.empty = TRY(only_chunks_follow(bytes, body, big_endian));
      if (!header.empty && is_placeholder(*header.data_bytes)) header.data_bytes.reset();
      return std::optional<WavHeader>(header);
    }
    offset = body + chunk->size + (chunk->size & 1);
    if ((chunk->size & 1) != 0 && TRY(is_unpadded(bytes, offset, big_endian))) {
      header.missing_padding = offset - 1;
      return std::optional<WavHeader>(header);
    }
  }
  return missing("data", offset);
}

Result<bool> may_hold_dts(ByteSource& bytes, const WavHeader& header) {
  constexpr std::array<std::uint32_t, 4> kSync{0x80017ffe, 0x0180fe7f, 0xe8001fff, 0x00e8ff1f};
  std::array<std::byte, 32 << 10> data;
  const std::size_t count = TRY(bytes.peek(header.data_offset, data));
  int found = 0;
  for (std::size_t i = 0; i + 4 <= count; i += 2) {
    std::uint32_t word = 0;
    std::memcpy(&word, &data[i], sizeof(word));
    found += std::ranges::find(kSync, word) != kSync.end();
  }
  return found >= 2;
}

}  // namespace oasr
