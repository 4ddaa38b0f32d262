// Signs that the end of an encoded stream is missing, which the decoding libraries do not report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace oasr {

// Bytes of the file that say enough for declared_file_bytes.
inline constexpr std::size_t kHeadBytes = 64;

// The size that a Matroska/WebM, AVI or compressed-WAV header gives for the whole file; nothing for
// other containers and for headers that leave it open.
std::optional<std::uint64_t> declared_file_bytes(std::span<const std::byte> head);

// The last page of an Ogg stream: `tail` are the last bytes of the file, at least a page (64 KiB)
// if there are so many. `unmarked`: whole, but without the end-of-stream mark.
enum class OggEnd : std::uint8_t { marked, unmarked, cut };
OggEnd ogg_end(std::span<const std::byte> tail);

// Bytes of an MPEG layer III frame from its header; nothing if `packet` does not start with one.
std::optional<std::size_t> mp3_frame_bytes(std::span<const std::byte> packet);

}  // namespace oasr
