// The bytes of one file and what keeps them alive: readers take these, so that a fuzzer or a test
// needs no file.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "base/fs.h"
#include "base/located.h"
#include "base/result.h"

namespace oasr {

struct FileBytes {
  std::filesystem::path path;  // for errors
  std::span<const std::byte> bytes;
  std::shared_ptr<const MappedFile> owner;  // of the bytes; null: the caller keeps them

  // Maps a file; nothing is read yet.
  static Result<FileBytes> map(const std::filesystem::path& path) {
    auto file = TRY(MappedFile::open(path));
    return FileBytes{path, file->bytes(), file};
  }

  std::string where() const { return path.string(); }
};

}  // namespace oasr
