#include "audio/byte_source.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <system_error>
#include <vector>

#include "base/check.h"
#include "base/descriptors.h"

namespace oasr {
namespace {

constexpr int kPollMilliseconds = 100;

Unexpected read_failed(int error) {
  return unexpected(ErrorCode::io, "reading failed: " + std::generic_category().message(error));
}

// A regular file. Reads by position, so that a shared descriptor's own offset does not matter.
class FileBytes final : public ByteSource {
 public:
  FileBytes(int descriptor, bool owned, std::uint64_t start, std::uint64_t size)
      : descriptor_(descriptor), owned_(owned), start_(start), size_(size) {}
  ~FileBytes() override {
    if (owned_) ::close(descriptor_);
  }
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  Result<std::size_t> read(std::span<std::byte> out) override {
    const auto count = TRY(peek(position_, out));
    position_ += count;
    return count;
  }

  Result<std::size_t> peek(std::uint64_t offset, std::span<std::byte> out) override {
    std::size_t done = 0;
    while (done < out.size() && offset + done < size_) {
      const auto count = ::pread(descriptor_, out.data() + done, out.size() - done,
                                 static_cast<off_t>(start_ + offset + done));
      if (count == 0) break;
      if (count < 0) {
        if (errno == EINTR) continue;
        return read_failed(errno);
      }
      done += static_cast<std::size_t>(count);
    }
    return done;
  }

  std::optional<std::uint64_t> size() const override { return size_; }
  std::uint64_t position() const override { return position_; }
  void seek(std::uint64_t position) override { position_ = position; }

 private:
  int descriptor_;
  bool owned_;
  std::uint64_t start_;  // of the audio within the file: standard input may have been read before
  std::uint64_t size_;
  std::uint64_t position_ = 0;
};

// Makes reads of `descriptor` block, after the writer of a named pipe came: before that a read would be
// the end, and poll() tells nothing.
void wait_for_writer(int descriptor, const std::function<bool()>& cancelled) {
  pollfd wanted{descriptor, POLLIN, 0};
  while (::poll(&wanted, 1, kPollMilliseconds) <= 0 && !(cancelled && cancelled())) {
  }
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
}

// A pipe, terminal or socket.
class PipeBytes final : public ByteSource {
 public:
  PipeBytes(int descriptor, bool owned, std::function<bool()> cancelled)
      : descriptor_(descriptor), owned_(owned), cancelled_(std::move(cancelled)) {}
  ~PipeBytes() override {
    if (owned_) ::close(descriptor_);
  }
  PipeBytes(const PipeBytes&) = delete;
  PipeBytes& operator=(const PipeBytes&) = delete;

  Result<std::size_t> read(std::span<std::byte> out) override {
    if (position_ < prefix_.size()) {
      const auto count = std::min<std::size_t>(out.size(), prefix_.size() - position_);
      std::memcpy(out.data(), prefix_.data() + position_, count);
      position_ += count;
      return count;
    }
    const auto count = TRY(read_descriptor(out));
    position_ += count;
    return count;
  }

  Result<std::size_t> peek(std::uint64_t offset, std::span<std::byte> out) override {
    const auto wanted = std::min<std::uint64_t>(offset + out.size(), kPipePrefix);
    while (prefix_.size() < wanted && position_ <= prefix_.size()) {
      const auto before = prefix_.size();
      prefix_.resize(static_cast<std::size_t>(wanted));
      const auto count = read_descriptor(std::span(prefix_).subspan(before));
      prefix_.resize(before + (count ? *count : 0));
      if (!count) return unexpected(count.error());
      if (*count == 0) break;
    }
    if (offset >= prefix_.size()) return std::size_t{0};
    const auto count =
        std::min<std::size_t>(out.size(), prefix_.size() - static_cast<std::size_t>(offset));
    std::memcpy(out.data(), prefix_.data() + offset, count);
    return count;
  }

  std::optional<std::uint64_t> size() const override { return std::nullopt; }
  std::uint64_t position() const override { return position_; }
  void seek(std::uint64_t) override { CHECK(false, "a pipe can not be sought"); }

 private:
  Result<std::size_t> read_descriptor(std::span<std::byte> out) {
    for (;;) {
      if (cancelled_) TRY(wait_for_bytes());
      const auto count = ::read(descriptor_, out.data(), out.size());
      if (count >= 0) return static_cast<std::size_t>(count);
      if (errno != EINTR) return read_failed(errno);
    }
  }

  // A writer may never write: what stops the work is asked meanwhile.
  Status wait_for_bytes() {
    pollfd wanted{descriptor_, POLLIN, 0};
    while (::poll(&wanted, 1, kPollMilliseconds) <= 0) {
      if (cancelled_()) return unexpected(ErrorCode::cancelled, "the reading was cancelled");
    }
    return {};
  }

  int descriptor_;
  bool owned_;
  std::function<bool()> cancelled_;
  std::uint64_t position_ = 0;
  std::vector<std::byte> prefix_;
};

class MemoryBytes final : public ByteSource {
 public:
  explicit MemoryBytes(std::span<const std::byte> bytes) : bytes_(bytes) {}

  Result<std::size_t> read(std::span<std::byte> out) override {
    const auto count = TRY(peek(position_, out));
    position_ += count;
    return count;
  }

  Result<std::size_t> peek(std::uint64_t offset, std::span<std::byte> out) override {
    if (offset >= bytes_.size()) return std::size_t{0};
    const auto rest = bytes_.subspan(static_cast<std::size_t>(offset));
    const auto count = std::min(out.size(), rest.size());
    if (count > 0) std::memcpy(out.data(), rest.data(), count);
    return count;
  }

  std::optional<std::uint64_t> size() const override { return bytes_.size(); }
  std::uint64_t position() const override { return position_; }
  void seek(std::uint64_t position) override { position_ = position; }

 private:
  std::span<const std::byte> bytes_;
  std::uint64_t position_ = 0;
};

class PaddedBytes final : public ByteSource {
 public:
  PaddedBytes(ByteSource& inner, std::uint64_t offset) : inner_(inner), offset_(offset) {}

  Result<std::size_t> read(std::span<std::byte> out) override {
    if (position_ == offset_ && !out.empty()) {
      out[0] = std::byte{0};
      ++position_;
      return std::size_t{1};
    }
    if (position_ < offset_)
      out = out.first(std::min<std::uint64_t>(out.size(), offset_ - position_));
    const auto count = TRY(inner_.read(out));
    position_ += count;
    return count;
  }

  Result<std::size_t> peek(std::uint64_t offset, std::span<std::byte> out) override {
    if (offset > offset_) return inner_.peek(offset - 1, out);
    const auto before = std::min<std::uint64_t>(out.size(), offset_ - offset);
    auto count = TRY(inner_.peek(offset, out.first(before)));
    if (count < before || before == out.size()) return count;
    out[count++] = std::byte{0};
    return count + TRY(inner_.peek(offset_, out.subspan(count)));
  }

  std::optional<std::uint64_t> size() const override {
    const auto size = inner_.size();
    return size ? std::optional(*size + 1) : size;
  }
  std::uint64_t position() const override { return position_; }
  void seek(std::uint64_t position) override {
    position_ = position;
    inner_.seek(position > offset_ ? position - 1 : position);
  }

 private:
  ByteSource& inner_;
  std::uint64_t offset_;
  std::uint64_t position_ = 0;
};

}  // namespace

std::unique_ptr<ByteSource> with_zero_byte(ByteSource& inner, std::uint64_t offset) {
  return std::make_unique<PaddedBytes>(inner, offset);
}

Result<std::unique_ptr<ByteSource>> open_bytes(const std::filesystem::path& path,
                                               std::function<bool()> cancelled) {
  const bool standard_input = path == "-";
  const std::string where = standard_input ? "standard input" : path.string();
  // Without blocking: a named pipe would wait for its writer, and no one could stop that.
  const int descriptor =
      standard_input ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    const int error = errno;
    return unexpected(error == ENOENT ? ErrorCode::not_found : ErrorCode::io,
                      "can not open the audio: " + std::generic_category().message(error), where,
                      descriptor_remedy(error));
  }
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) {
    const int error = errno;
    if (!standard_input) ::close(descriptor);
    return unexpected(ErrorCode::io, std::generic_category().message(error), where);
  }
  if (S_ISDIR(status.st_mode)) {
    if (!standard_input) ::close(descriptor);
    return unexpected(ErrorCode::bad_audio, "is a folder, not an audio file", where,
                      "name the files in it, or use --recursive");
  }
  if (!S_ISREG(status.st_mode)) {
    if (!standard_input) wait_for_writer(descriptor, cancelled);
    return std::unique_ptr<ByteSource>(
        std::make_unique<PipeBytes>(descriptor, !standard_input, std::move(cancelled)));
  }
  const auto start =
      standard_input ? std::max<off_t>(::lseek(descriptor, 0, SEEK_CUR), 0) : off_t{0};
  const auto size = std::max<off_t>(status.st_size - start, 0);
  return std::unique_ptr<ByteSource>(std::make_unique<FileBytes>(descriptor, !standard_input,
                                                                 static_cast<std::uint64_t>(start),
                                                                 static_cast<std::uint64_t>(size)));
}

std::unique_ptr<ByteSource> bytes_from_memory(std::span<const std::byte> bytes) {
  return std::make_unique<MemoryBytes>(bytes);
}

}  // namespace oasr
