#include "base/fs.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace oasr {
namespace {

Unexpected io_error(const fs::path& path, const char* what) {
  const int code = errno;
  const auto kind = code == ENOENT ? ErrorCode::not_found : ErrorCode::io;
  return unexpected(kind, std::string(what) + ": " + std::strerror(code), path.string());
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

Result<std::string> read_text_file(const fs::path& path, std::size_t limit) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return io_error(path, "can not open the file");
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return io_error(path, "can not read the file's size");
  if (S_ISDIR(info.st_mode)) return unexpected(ErrorCode::io, "is a folder, not a file", path.string());
  std::string text;
  char buffer[1 << 16];
  while (true) {
    const auto n = ::read(file.get(), buffer, sizeof buffer);
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
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return io_error(path, "can not open the file");
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return io_error(path, "can not read the file's size");
  if (!S_ISREG(info.st_mode)) {
    return unexpected(ErrorCode::io, "is not a regular file", path.string());
  }
  std::span<const std::byte> bytes;
  if (const auto size = static_cast<std::size_t>(info.st_size); size > 0) {
    void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (data == MAP_FAILED) return io_error(path, "can not map the file");
    bytes = {static_cast<const std::byte*>(data), size};
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
  std::string name = (path.parent_path() / ("." + path.filename().string() + ".XXXXXX")).string();
  const int fd = ::mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0) return io_error(path, "can not create the file");
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(fd, 0666 & ~mask);
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

}  // namespace oasr
