// Zip archives, read strictly from bytes: the container of PyTorch checkpoints and Python wheels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace oasr {

enum class ZipMethod : std::uint16_t { stored = 0, deflated = 8 };

struct ZipEntry {
  std::string name;  // relative, '/'-separated, no "." or ".." component
  ZipMethod method = ZipMethod::stored;
  std::uint32_t crc32 = 0;          // of the uncompressed bytes; 0: the writer computed none, as torch.save can
  std::uint64_t size = 0;           // uncompressed, as the directory claims
  std::uint64_t header_offset = 0;  // of the local header in the archive
  std::span<const std::byte> data;  // as it lies in the archive, borrowed
};

// The central directory of an archive (zip64 too), checked as a whole at open: an archive is
// refused when it has entries that are encrypted, overlapping, duplicate, out of range, compressed
// in another way than deflate, or named outside its own folder. Borrows the archive's bytes.
class ZipArchive {
 public:
  // `where` names the archive in errors.
  static Result<ZipArchive> open(std::span<const std::byte> bytes, std::string where);

  // In the order of the central directory.
  std::span<const ZipEntry> entries() const { return entries_; }
  const ZipEntry* find(std::string_view name) const;

  using Sink = std::function<Status(std::span<const std::byte>)>;

  // Hands the uncompressed bytes of `entry` to `sink` in pieces. An error (after some pieces may
  // have been handed over) if the entry is larger than `limit` bytes, if its size or CRC-32 (where there is one) is
  // not what the directory says, or if `sink` fails.
  Status extract(const ZipEntry& entry, std::uint64_t limit, const Sink& sink) const;

  // The same into memory.
  Result<std::string> extract(const ZipEntry& entry, std::uint64_t limit) const;

  // The bytes of a stored entry in place, unchecked: extract() into nothing checks them. Unsupported if deflated.
  Result<std::span<const std::byte>> in_place(const ZipEntry& entry) const;

 private:
  std::string where_;
  std::vector<ZipEntry> entries_;
  std::vector<std::size_t> by_name_;  // indices of entries_, sorted by name
};

}  // namespace oasr
