// libsndfile behind the Decoder interface.
#include <fmt/format.h>
#include <sndfile.h>

#include <algorithm>

#include "audio/decoder.h"

namespace oasr {
namespace {

constexpr sf_count_t kBlockFrames = 4096;

ByteSource& source_of(void* user) { return *static_cast<ByteSource*>(user); }

sf_count_t file_size(void* user) { return static_cast<sf_count_t>(*source_of(user).size()); }

sf_count_t tell(void* user) { return static_cast<sf_count_t>(source_of(user).position()); }

sf_count_t seek(sf_count_t offset, int whence, void* user) {
  const sf_count_t base = whence == SEEK_CUR   ? tell(user)
                          : whence == SEEK_END ? file_size(user)
                                               : 0;
  if (offset < -base || offset > INT64_MAX - base) return -1;
  source_of(user).seek(static_cast<std::uint64_t>(base + offset));
  return base + offset;
}

sf_count_t read(void* out, sf_count_t count, void* user) {
  const auto done = source_of(user).read(
      {static_cast<std::byte*>(out), static_cast<std::size_t>(std::max<sf_count_t>(count, 0))});
  return done ? static_cast<sf_count_t>(*done) : 0;
}

sf_count_t write(const void*, sf_count_t, void*) { return 0; }

struct CloseFile {
  void operator()(SNDFILE* file) const { sf_close(file); }
};

// "SGI/…" and "flac" alike: the lower-case name of a format or sub-format.
std::string format_name(int format) {
  SF_FORMAT_INFO info{};
  info.format = format;
  if (sf_command(nullptr, SFC_GET_FORMAT_INFO, &info, sizeof(info)) != 0) return "unknown";
  return info.extension != nullptr ? info.extension : info.name;
}

class SndfileDecoder final : public Decoder {
 public:
  Status open(ByteSource& bytes, std::optional<std::uint64_t> declared_frames) {
    SF_VIRTUAL_IO io{file_size, seek, read, write, tell};
    SF_INFO header{};
    file_.reset(sf_open_virtual(&io, SFM_READ, &header, &bytes));
    if (!file_) {
      const bool foreign = sf_error(nullptr) == SF_ERR_UNRECOGNISED_FORMAT;
      return unexpected(foreign ? ErrorCode::unsupported : ErrorCode::bad_audio,
                        sf_strerror(nullptr));
    }
    TRY(check_format(header.samplerate, header.channels));
    info_.container = format_name(header.format & SF_FORMAT_TYPEMASK);
    info_.codec = format_name(header.format & SF_FORMAT_SUBMASK);
    info_.sample_rate = header.samplerate;
    info_.channels = header.channels;
    declared_frames_ = declared_frames.value_or(
        static_cast<std::uint64_t>(std::max<sf_count_t>(header.frames, 0)));
    info_.declared_seconds = static_cast<double>(declared_frames_) / header.samplerate;
    SampleBlock block;
    const bool some = TRY(decode(block));
    if (!some) {
      return unexpected(ErrorCode::bad_audio,
                        fmt::format("no sample can be decoded: {}", sf_strerror(file_.get())));
    }
    first_ = std::move(block);
    return {};
  }

  const AudioInfo& info() const override { return info_; }

  Result<bool> next(SampleBlock& block) override {
    if (first_) {
      block = std::move(*first_);
      first_.reset();
      return true;
    }
    const bool some = TRY(decode(block));
    if (!some && (frames_ < declared_frames_ || sf_error(file_.get()) != SF_ERR_NO_ERROR)) {
      truncated_ = fmt::format("the audio ends at {}: the header declares {}",
                               seconds_text(frames_, info_.sample_rate),
                               seconds_text(declared_frames_, info_.sample_rate));
      if (sf_error(file_.get()) != SF_ERR_NO_ERROR) {
        *truncated_ += fmt::format(" ({})", sf_strerror(file_.get()));
      }
    }
    return some;
  }

 private:
  Result<bool> decode(SampleBlock& block) {
    block.channels = info_.channels;
    block.sample_rate = info_.sample_rate;
    const auto channels = static_cast<std::size_t>(info_.channels);
    block.samples.resize(static_cast<std::size_t>(kBlockFrames) * channels);
    const auto count = sf_readf_float(file_.get(), block.samples.data(), kBlockFrames);
    block.samples.resize(static_cast<std::size_t>(std::max<sf_count_t>(count, 0)) * channels);
    frames_ += block.samples.size() / channels;
    return !block.samples.empty();
  }

  std::unique_ptr<SNDFILE, CloseFile> file_;
  AudioInfo info_;
  std::uint64_t declared_frames_ = 0;
  std::uint64_t frames_ = 0;
  std::optional<SampleBlock> first_;
};

}  // namespace

Result<std::unique_ptr<Decoder>> open_sndfile(ByteSource& bytes,
                                              std::optional<std::uint64_t> declared_frames) {
  auto decoder = std::make_unique<SndfileDecoder>();
  TRY(decoder->open(bytes, declared_frames));
  return std::unique_ptr<Decoder>(std::move(decoder));
}

}  // namespace oasr
