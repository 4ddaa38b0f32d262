#include "quantize/destination.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "base/fs.h"
#include "base/places.h"
#include "checkpoint/native.h"

namespace oasr::quantize {
namespace {

constexpr const char* kConfig = "oasr_config.json";

Unexpected io_error(int code, const fs::path& where) {
  return unexpected(ErrorCode::io, std::generic_category().message(code), where.string());
}

// Only what a checkpoint consists of is ever replaced.
Status check_ours(const fs::path& folder) {
  const auto refuse = [&](const std::string& what) {
    return unexpected(ErrorCode::invalid_argument, what + ": --force would delete what is not ours",
                      folder.string(), "choose another destination");
  };
  std::error_code failed;
  if (!fs::is_directory(folder, failed)) return refuse("is no folder");
  const auto config = read_text_file(folder / kConfig);
  if (!config || !names_native_format(*config)) return refuse("is no oasr checkpoint");
  for (const auto& entry : fs::directory_iterator(folder, failed)) {
    const std::string name = entry.path().filename().string();
    const bool report = name == kReportJson || name == kReportHtml;
    if (!entry.is_regular_file(failed) || !(report || is_native_file(name))) return refuse("holds " + name);
  }
  if (failed) return unexpected(ErrorCode::io, failed.message(), folder.string());
  return {};
}

Status check_place(const fs::path& folder, const fs::path& source, bool force) {
  std::error_code failed;
  if (fs::is_symlink(fs::symlink_status(folder, failed))) {
    return unexpected(ErrorCode::invalid_argument, "is a symbolic link", folder.string(),
                      "name the folder itself");
  }
  TRY(check_apart(folder, source));
  if (!fs::exists(folder, failed) || (fs::is_directory(folder, failed) && fs::is_empty(folder, failed)))
    return {};
  if (!force) {
    return unexpected(ErrorCode::invalid_argument, "exists already", folder.string(),
                      "choose another destination, or replace it with --force");
  }
  return check_ours(folder);
}

// Renames are on disk when their folder is.
void flush_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace

Result<Destination> Destination::open(const fs::path& folder, const fs::path& source, bool force) {
  fs::path target = folder;
  if (!target.has_filename()) target = target.parent_path();  // "out/" is "out"
  TRY(check_place(target, source, force));
  std::error_code failed;
  fs::path parent = target.parent_path();
  if (parent.empty()) parent = ".";
  fs::create_directories(parent, failed);
  if (failed) return unexpected(ErrorCode::io, failed.message(), parent.string());
  std::string pattern = (parent / ("." + target.filename().string() + ".draft-XXXXXX")).string();
  if (::mkdtemp(pattern.data()) == nullptr) return io_error(errno, parent);
  return Destination(std::move(target), pattern, force);
}

Destination::Destination(Destination&& other) noexcept
    : folder_(std::move(other.folder_)), drafts_(std::move(other.drafts_)), force_(other.force_) {
  other.drafts_.clear();
}

Destination::~Destination() {
  if (drafts_.empty()) return;
  std::error_code ignored;
  fs::remove_all(drafts_, ignored);
}

Status Destination::commit(const fs::path& draft) {
  // Something may have appeared there since.
  TRY(check_place(folder_, draft, force_));
  std::error_code ignored;
  fs::remove(folder_, ignored);  // an empty folder; anything else stays
  const bool occupied = fs::exists(fs::symlink_status(folder_, ignored));
  const unsigned flags = occupied ? RENAME_EXCHANGE : RENAME_NOREPLACE;
  if (::renameat2(AT_FDCWD, draft.c_str(), AT_FDCWD, folder_.c_str(), flags) != 0) {
    if (errno != EINVAL && errno != ENOSYS) return io_error(errno, folder_);
    // A file system without these: for a moment nothing is there.
    if (occupied && ::rename(folder_.c_str(), this->draft("replaced").c_str()) != 0)
      return io_error(errno, folder_);
    if (::rename(draft.c_str(), folder_.c_str()) != 0) {
      const int code = errno;
      if (occupied && ::rename(this->draft("replaced").c_str(), folder_.c_str()) != 0)
        return io_error(errno, folder_);
      return io_error(code, folder_);
    }
  }
  flush_folder(folder_.has_parent_path() ? folder_.parent_path() : fs::path("."));
  return {};
}

}  // namespace oasr::quantize
