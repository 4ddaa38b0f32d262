// A cursor over untrusted bytes: every read is checked against the span's end.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/result.h"

namespace oasr {

// Little-endian values, strings and sub-spans from the front of a span. Not thread-safe.
class ByteReader {
 public:
  // `what` names the container in errors ("ggml file").
  ByteReader(std::span<const std::byte> bytes, std::string_view what, ErrorCode code = ErrorCode::bad_checkpoint)
      : bytes_(bytes), what_(what), code_(code) {}

  std::size_t offset() const { return offset_; }
  std::size_t remaining() const { return bytes_.size() - offset_; }

  // The next sizeof(T) bytes as a little-endian number.
  template <class T>
    requires std::is_arithmetic_v<T>
  Result<T> read() {
    static_assert(std::endian::native == std::endian::little);
    if (remaining() < sizeof(T)) return ends_early(sizeof(T));
    T value;
    std::memcpy(&value, bytes_.data() + offset_, sizeof(T));
    offset_ += sizeof(T);
    return value;
  }

  // The next `size` bytes, borrowed.
  Result<std::span<const std::byte>> take(std::uint64_t size) {
    if (size > remaining()) return ends_early(size);
    const auto part = bytes_.subspan(offset_, static_cast<std::size_t>(size));
    offset_ += part.size();
    return part;
  }

  // The next `size` bytes as text (any bytes; not checked for UTF-8).
  Result<std::string> take_string(std::uint64_t size) {
    auto part = take(size);
    if (!part) return unexpected(part.error());
    return std::string(reinterpret_cast<const char*>(part->data()), part->size());
  }

  Status seek(std::uint64_t offset) {
    if (offset > bytes_.size()) return ends_early(offset);
    offset_ = static_cast<std::size_t>(offset);
    return {};
  }

 private:
  Unexpected ends_early(std::uint64_t wanted) const {
    return unexpected(code_, std::string(what_) + " ends early: " + std::to_string(wanted) +
                                 " bytes wanted at offset " + std::to_string(offset_) + ", " +
                                 std::to_string(remaining()) + " left",
                      {}, "download or copy the file again");
  }

  std::span<const std::byte> bytes_;
  std::string_view what_;
  ErrorCode code_;
  std::size_t offset_ = 0;
};

}  // namespace oasr
