// Files: whole reads, memory maps, and writes that appear complete or not at all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace oasr {

namespace fs = std::filesystem;

// The whole file as text. Refuses files over `limit` bytes (bad input must not exhaust memory) and
// what is no regular file: a pipe would wait for its writer, a device may never end.
Result<std::string> read_text_file(const fs::path& path, std::size_t limit = std::size_t{64} << 20);

// A file mapped read-only. The bytes live as long as the object.
class MappedFile {
 public:
  // Refuses what is no regular file.
  static Result<std::shared_ptr<const MappedFile>> open(const fs::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  const fs::path& path() const { return path_; }

  // Tells the kernel that the pages are not needed for now; reading them again reloads them.
  void release_pages() const;

 private:
  MappedFile(fs::path path, std::span<const std::byte> bytes);
  fs::path path_;
  std::span<const std::byte> bytes_;
};

// Writes to a temporary file beside `path`; commit() flushes it to disk and renames it over
// `path`. Without a commit nothing is left behind. Not thread-safe.
class AtomicFile {
 public:
  static Result<AtomicFile> create(const fs::path& path);
  ~AtomicFile();
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  Status write(std::span<const std::byte> bytes);
  Status write(std::string_view text);
  Status commit();

 private:
  AtomicFile(fs::path path, fs::path temporary, int descriptor);
  fs::path path_;
  fs::path temporary_;
  int descriptor_ = -1;
};

// AtomicFile for a whole text.
Status write_text_file(const fs::path& path, std::string_view text);

// A folder that appears complete or not at all: files are put into temporary(), a folder beside
// `path`; commit() flushes it to disk and renames it to `path`. Without a commit nothing is left
// behind. Not thread-safe.
class AtomicFolder {
 public:
  // invalid_argument if `path` exists and is not an empty folder.
  static Result<AtomicFolder> create(const fs::path& path);
  ~AtomicFolder();
  AtomicFolder(AtomicFolder&& other) noexcept;
  AtomicFolder& operator=(AtomicFolder&&) = delete;
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;

  const fs::path& temporary() const { return temporary_; }
  // The files in temporary() must be flushed already, as AtomicFile does. Never replaces anything
  // but an empty folder, even if `path` came into being meanwhile.
  Status commit();

 private:
  AtomicFolder(fs::path path, fs::path temporary);
  fs::path path_;
  fs::path temporary_;  // empty: nothing to remove
};

}  // namespace oasr
