// Bytes of an encoded audio file, pipe or memory block, as the decoding libraries want them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "base/result.h"

namespace oasr {

// Not thread-safe. A pipe can be read once, forward; its first kPipePrefix bytes can be peeked at.
class ByteSource {
 public:
  static constexpr std::size_t kPipePrefix = std::size_t{64} << 10;

  virtual ~ByteSource() = default;

  // The next bytes, as many as are at hand but at least one; 0 at the end.
  virtual Result<std::size_t> read(std::span<std::byte> out) = 0;

  // Bytes at `offset` from the start, without moving the read position: as many of `out.size()` as
  // exist (in a pipe: exist within the prefix).
  virtual Result<std::size_t> peek(std::uint64_t offset, std::span<std::byte> out) = 0;

  // Total bytes; nothing for a pipe. A source with a size can be sought.
  virtual std::optional<std::uint64_t> size() const = 0;
  virtual std::uint64_t position() const = 0;

  // Moves the read position; `position` may lie beyond the end. Only with a size.
  virtual void seek(std::uint64_t position) = 0;
};

// A file, or standard input when `path` is "-" (a redirected file can be sought, a pipe can not).
// Folders and files that can not be opened are errors. `cancelled` is polled while a pipe has no bytes (or
// a named pipe no writer); true ends the read with an Error `cancelled`.
Result<std::unique_ptr<ByteSource>> open_bytes(const std::filesystem::path& path,
                                               std::function<bool()> cancelled = {});

// `inner` with one zero byte put in at `offset`. `inner` must outlive it.
std::unique_ptr<ByteSource> with_zero_byte(ByteSource& inner, std::uint64_t offset);

// Borrowed memory.
std::unique_ptr<ByteSource> bytes_from_memory(std::span<const std::byte> bytes);

}  // namespace oasr
