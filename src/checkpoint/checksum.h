// CRC-32 of bytes and of tensors, as native checkpoints keep them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "checkpoint/state_dict.h"

namespace oasr {

// By the name of a tensor or a file.
using Checksums = std::map<std::string, std::uint32_t, std::less<>>;

// zlib's CRC-32 of `bytes`, continued from that of the bytes before them.
std::uint32_t crc32_of(std::span<const std::byte> bytes, std::uint32_t before = 0);
std::uint32_t crc32_of(std::string_view text);

// What the checksum of a tensor begins with: the CRC-32 of its dtype and shape as "F32[2,3]". The
// tensor's bytes follow, so that a tensor read as another type or in another shape is found too.
std::uint32_t begin_tensor_checksum(StorageFormat format, const Shape& shape);

// "crc32:0123abcd", and back; nothing for any other text.
std::string checksum_text(std::uint32_t checksum);
std::optional<std::uint32_t> parse_checksum(std::string_view text);

}  // namespace oasr
