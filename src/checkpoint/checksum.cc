#include "checkpoint/checksum.h"

#include <fmt/format.h>
#include <zlib.h>

#include <charconv>

#include "checkpoint/safetensors.h"

namespace oasr {
namespace {

constexpr std::string_view kPrefix = "crc32:";
constexpr std::size_t kChecksumDigits = 8;

}  // namespace

std::uint32_t crc32_of(std::span<const std::byte> bytes, std::uint32_t before) {
  if (bytes.empty()) return before;  // zlib takes a null pointer for "start again"
  return static_cast<std::uint32_t>(
      ::crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::uint32_t crc32_of(std::string_view text) {
  return crc32_of(std::as_bytes(std::span(text.data(), text.size())));
}

std::uint32_t begin_tensor_checksum(StorageFormat format, const Shape& shape) {
  std::string text(safetensors_dtype(format).value_or("?"));
  text += '[';
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    text += (axis > 0 ? "," : "") + std::to_string(shape[axis]);
  }
  return crc32_of(text + ']');
}

std::string checksum_text(std::uint32_t checksum) { return fmt::format("crc32:{:08x}", checksum); }

std::optional<std::uint32_t> parse_checksum(std::string_view text) {
  if (!text.starts_with(kPrefix) || text.size() != kPrefix.size() + kChecksumDigits) return std::nullopt;
  std::uint32_t value = 0;
  const auto* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + kPrefix.size(), end, value, 16);
  // Only the spelling that is written: small letters.
  if (parsed.ec != std::errc() || parsed.ptr != end || checksum_text(value) != text) {
    return std::nullopt;
  }
  return value;
}

}  // namespace oasr
