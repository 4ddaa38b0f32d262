#include "base/fs.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/descriptors.h"

namespace oasr {
namespace {

Unexpected io_error(const fs::path& path, const char* what) {
  const int code = errno;
  const auto kind = code == ENOENT ? ErrorCode::not_found : ErrorCode::io;
  return unexpected(kind, std::string(what) + ": " + std::strerror(code), path.string(), descriptor_remedy(code));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a named pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

struct RegularFile {
  Descriptor descriptor;
  std::size_t size;  // bytes
};

// For reading. Without O_NONBLOCK, which regular files ignore, opening a pipe waits for its writer.
Result<RegularFile> open_regular(const fs::path& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0) return io_error(path, "can not open the file");
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return io_error(path, "can not read the file's size");
  if (!S_ISREG(info.st_mode)) {
    return unexpected(ErrorCode::io, std::string("is not a regular file but ") + kind_of(info.st_mode),
                      path.string());
  }
  return RegularFile{std::move(file), static_cast<std::size_t>(info.st_size)};
}

// Permissions of a new file or folder as open() and mkdir() would give them.
mode_t permissions(mode_t all) {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return all & ~mask;
}

// ".name.XXXXXX" beside `path`, for mkostemp and mkdtemp.
std::string temporary_name(const fs::path& path) {
  return (path.parent_path() / ("." + path.filename().string() + ".XXXXXX")).string();
}

Status flush_folder(const fs::path& path) {
  const Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) return io_error(path, "can not open the folder");
  // Some file systems can not flush folders, and say so with EINVAL.
  if (::fsync(folder.get()) != 0 && errno != EINVAL) return io_error(path, "can not flush the folder");
  return {};
}

}  // namespace

Result<std::string> read_text_file(const fs::path& path, std::size_t limit) {
  const auto file = TRY(open_regular(path));
  std::string text;
  char buffer[1 << 16];
  while (true) {
    const auto n = ::read(file.descriptor.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error(path, "can not read the file");
    if (n == 0) return text;
    text.append(buffer, static_cast<std::size_t>(n));
    if (text.size() > limit) {
      return unexpected(ErrorCode::io, "is larger than " + std::to_string(limit) + " bytes",
                        path.string());
    }
  }
}

MappedFile::MappedFile(fs::path path, std::span<const std::byte> bytes)
    : path_(std::move(path)), bytes_(bytes) {}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const fs::path& path) {
  const auto file = TRY(open_regular(path));
  std::span<const std::byte> bytes;
  if (file.size > 0) {
    void* data = ::mmap(nullptr, file.size, PROT_READ, MAP_PRIVATE, file.descriptor.get(), 0);
    if (data == MAP_FAILED) return io_error(path, "can not map the file");
    bytes = {static_cast<const std::byte*>(data), file.size};
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(path, bytes));
}

void MappedFile::release_pages() const {
  if (!bytes_.empty()) {
    ::madvise(const_cast<std::byte*>(bytes_.data()), bytes_.size(), MADV_DONTNEED);
  }
}

AtomicFile::AtomicFile(fs::path path, fs::path temporary, int descriptor)
    : path_(std::move(path)), temporary_(std::move(temporary)), descriptor_(descriptor) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

Result<AtomicFile> AtomicFile::create(const fs::path& path) {
  std::string name = temporary_name(path);
  const int fd = ::mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0) return io_error(path, "can not create the file");
  ::fchmod(fd, permissions(0666));
  return AtomicFile(path, name, fd);
}

Status AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto n = ::write(descriptor_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error(path_, "can not write the file");
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Status AtomicFile::write(std::string_view text) {
  return write(std::as_bytes(std::span(text.data(), text.size())));
}

Status AtomicFile::commit() {
  if (::fsync(descriptor_) != 0) return io_error(path_, "can not flush the file");
  const int fd = std::exchange(descriptor_, -1);
  if (::close(fd) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    auto error = io_error(path_, "can not finish the file");
    ::unlink(temporary_.c_str());
    return error;
  }
  return {};
}

Status write_text_file(const fs::path& path, std::string_view text) {
  auto file = TRY(AtomicFile::create(path));
  TRY(file.write(text));
  return file.commit();
}

AtomicFolder::AtomicFolder(fs::path path, fs::path temporary)
    : path_(std::move(path)), temporary_(std::move(temporary)) {}

AtomicFolder::AtomicFolder(AtomicFolder&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, fs::path())) {}

AtomicFolder::~AtomicFolder() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

Result<AtomicFolder> AtomicFolder::create(const fs::path& given) {
  const fs::path path = given.has_filename() ? given : given.parent_path();  // "name/" is "name"
  std::error_code ignored;
  const auto status = fs::symlink_status(path, ignored);  // a link to a folder is no folder
  if (fs::exists(status) && !(fs::is_directory(status) && fs::is_empty(path, ignored))) {
    return unexpected(ErrorCode::invalid_argument, "exists and is not an empty folder", path.string(),
                      "give a new folder, or remove this one first");
  }
  std::string name = temporary_name(path);
  if (::mkdtemp(name.data()) == nullptr) return io_error(path, "can not create the folder");
  ::chmod(name.c_str(), permissions(0777));
  return AtomicFolder(path, name);
}

Status AtomicFolder::commit() {
  TRY(flush_folder(temporary_));
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return io_error(path_, "can not finish the folder");
  temporary_.clear();
  // The folder is whole either way; unflushed, a loss of power may take it away as a whole.
  (void)flush_folder(path_.has_parent_path() ? path_.parent_path() : fs::path("."));
  return {};
}

}  // namespace oasr
