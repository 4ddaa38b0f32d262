#include "audio/audio_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "audio/content.h"
#include "audio/decoder.h"
#include "audio/memory_audio.h"
#include "audio/mixdown.h"
#include "audio/resampler.h"
#include "audio/wav_header.h"

namespace oasr {
namespace {

constexpr std::string_view kRawEncodings[] = {"s8",    "u8",    "s16le", "s16be", "s24le",
                                              "s24be", "s32le", "s32be", "f32le", "f32be",
                                              "f64le", "f64be", "mulaw", "alaw"};

Status check_options(const AudioOptions& options) {
  if (options.sample_rate < kLowestRate || options.sample_rate > kHighestRate) {
    return unexpected(ErrorCode::invalid_argument,
                      fmt::format("{} Hz is no sample rate to resample to", options.sample_rate));
  }
  return options.raw ? check_raw_format(*options.raw) : Status();
}

// Which library reads what; the file's name never matters.
//   RIFX (big-endian WAV)                   libsndfile: libav swaps its samples
//   everything else                         libav: it reads most, also from pipes, and copes with
//                                           changes inside a stream
//   what libav refuses, or of which it can  libsndfile, if it can: formats that only it knows, FLAC
//   not decode the first packet             with a wrong STREAMINFO
Result<std::unique_ptr<Decoder>> choose_decoder(ByteSource& bytes,
                                                const std::optional<RawFormat>& raw) {
  const auto wav = raw ? std::nullopt : TRY(read_wav_header(bytes));
  if (wav && wav->big_endian) {
    if (bytes.size()) return open_sndfile(bytes, wav->frames());
    return unexpected(ErrorCode::unsupported, "big-endian WAV (RIFX) can not be read from a pipe",
                      {}, "save it to a file first");
  }
  auto libav = open_libav(bytes, raw);
  const bool sound = libav && !(*libav)->truncated();
  if (sound || raw || !bytes.size()) return libav;
  bytes.seek(0);
  auto sndfile = open_sndfile(bytes);
  if (sndfile) {
    (*sndfile)->warn("FFmpeg can not decode it (" +
                     (libav ? *(*libav)->truncated() : libav.error().what) + "); libsndfile can");
    return sndfile;
  }
  if (libav) {
    bytes.seek(0);
    return open_libav(bytes, raw);
  }
  if (sndfile.error().code == ErrorCode::bad_audio) {
    libav.error().what += "; libsndfile: " + sndfile.error().what;
  }
  return libav;
}

using OpenBytes = std::function<Result<std::unique_ptr<ByteSource>>()>;

// Decoder, mix-down and resampler in a row, with one buffer at the end of it.
class DecodedSource final : public AudioSource {
 public:
  DecodedSource(OpenBytes open_bytes, std::string where, AudioOptions options)
      : open_bytes_(std::move(open_bytes)),
        where_(std::move(where)),
        options_(std::move(options)) {}

  Status open();
  const AudioInfo& info() const override { return decoder_->info(); }
  Result<std::size_t> read(std::span<float> out) override;
  const std::optional<std::string>& truncated() const override { return truncated_; }
  const std::vector<std::string>& warnings() const override { return decoder_->warnings(); }
  Status rewind() override;
  bool rewindable() const override { return rewindable_; }

 private:
  Status refill();
  Status take(const SampleBlock& block);
  Unexpected located(Error error) const {
    if (error.where.empty()) error.where = where_;
    return unexpected(std::move(error));
  }

  OpenBytes open_bytes_;
  std::string where_;
  AudioOptions options_;
  std::unique_ptr<ByteSource> bytes_;
  std::unique_ptr<Decoder> decoder_;
  std::optional<Resampler> resampler_;
  SampleBlock block_;
  std::vector<float> mono_;
  std::vector<float> ready_;  // at the target rate, from taken_ on not yet handed out
  std::size_t taken_ = 0;
  int resampler_rate_ = 0;
  std::uint64_t frames_ = 0;  // of the file
  bool ended_ = false;
  bool rewindable_ = false;
  std::optional<Error> failed_;  // an error stays
  std::optional<std::string> truncated_;
};

Status DecodedSource::open() {
  decoder_.reset();
  resampler_.reset();
  ready_.clear();
  taken_ = 0;
  frames_ = 0;
  ended_ = false;
  failed_.reset();
  truncated_.reset();
  bytes_.reset();  // a second reading needs no second descriptor
  bytes_ = TRY(open_bytes_());
  rewindable_ = bytes_->size().has_value();
  std::byte one{};
  auto some = bytes_->peek(0, {&one, 1});
  if (!some) return located(some.error());
  if (*some == 0) return unexpected(ErrorCode::bad_audio, "is empty (0 bytes)", where_);
  const auto content = options_.raw ? std::nullopt : describe_content(*bytes_);
  const auto damage = options_.raw ? std::nullopt : explain_damage(*bytes_);
  auto decoder = choose_decoder(*bytes_, options_.raw);
  if (!decoder) {
    auto error = decoder.error();
    if (error.code == ErrorCode::bad_audio) {
      if (content) return unexpected(error.code, fmt::format("is {}, not audio", *content), where_);
      if (damage) return unexpected(error.code, "is " + *damage, where_);
      error.what = "can not be decoded: " + error.what;
    }
    return located(error);
  }
  decoder_ = std::move(*decoder);
  const auto channels = decoder_->info().channels;
  if (options_.channel && (*options_.channel < 0 || *options_.channel >= channels)) {
    return unexpected(ErrorCode::invalid_argument,
                      fmt::format("there is no channel {}: the audio has {} (counted from 0)",
                                  *options_.channel, channels),
                      where_);
  }
  return {};
}

Status DecodedSource::rewind() {
  if (!rewindable()) {
    return unexpected(ErrorCode::unsupported, "a pipe can not be read twice", where_,
                      "save the audio to a file first");
  }
  auto opened = open();
  if (!opened) failed_ = opened.error();
  return opened;
}

Status DecodedSource::take(const SampleBlock& block) {
  if (!resampler_ || block.sample_rate != resampler_rate_) {  // at first, and when the rate changes
    if (resampler_) TRY(resampler_->finish(ready_));
    resampler_ = TRY(Resampler::create(block.sample_rate, options_.sample_rate));
    resampler_rate_ = block.sample_rate;
  }
  TRY(mix_down(block, options_.channel, frames_, mono_));
  frames_ += mono_.size();
  return resampler_->push(mono_, ready_);
}

Status DecodedSource::refill() {
  ready_.clear();
  taken_ = 0;
  while (ready_.empty() && !ended_) {
    if (TRY(decoder_->next(block_))) {
      TRY(take(block_));
      continue;
    }
    ended_ = true;
    truncated_ = decoder_->truncated();
    if (resampler_) TRY(resampler_->finish(ready_));
  }
  return {};
}

Result<std::size_t> DecodedSource::read(std::span<float> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    if (taken_ == ready_.size()) {
      if (!failed_) {
        auto filled = refill();
        if (!filled) failed_ = filled.error();
      }
      if (failed_) return located(*failed_);
      if (ready_.empty()) break;
    }
    const auto count = std::min(out.size() - done, ready_.size() - taken_);
    std::copy_n(ready_.begin() + static_cast<std::ptrdiff_t>(taken_), count,
                out.begin() + static_cast<std::ptrdiff_t>(done));
    taken_ += count;
    done += count;
  }
  return done;
}

Result<std::unique_ptr<AudioSource>> open_decoded(OpenBytes open_bytes, std::string where,
                                                  const AudioOptions& options) {
  TRY(check_options(options));
  auto source = std::make_unique<DecodedSource>(std::move(open_bytes), std::move(where), options);
  TRY(source->open());
  return std::unique_ptr<AudioSource>(std::move(source));
}

}  // namespace

Status check_raw_format(const RawFormat& raw) {
  if (std::find(std::begin(kRawEncodings), std::end(kRawEncodings), raw.encoding) ==
      std::end(kRawEncodings)) {
    return unexpected(ErrorCode::invalid_argument,
                      fmt::format("unknown raw encoding '{}'", raw.encoding), "raw",
                      fmt::format("one of {}", fmt::join(kRawEncodings, ", ")));
  }
  if (raw.sample_rate < kLowestRate || raw.sample_rate > kHighestRate) {
    return unexpected(ErrorCode::invalid_argument,
                      fmt::format("a sample rate of {} Hz is not served", raw.sample_rate), "raw_rate",
                      fmt::format("give {} to {}", kLowestRate, kHighestRate));
  }
  if (raw.channels < 1 || raw.channels > kMostChannels) {
    return unexpected(ErrorCode::invalid_argument, fmt::format("{} channels are not served", raw.channels),
                      "raw_channels", fmt::format("give 1 to {}", kMostChannels));
  }
  return {};
}

Result<std::unique_ptr<AudioSource>> open_audio(const std::filesystem::path& path,
                                                const AudioOptions& options) {
  return open_decoded([path, cancelled = options.cancelled] { return open_bytes(path, cancelled); },
                      path == "-" ? "standard input" : path.string(), options);
}

Result<std::unique_ptr<AudioSource>> open_audio_bytes(std::span<const std::byte> bytes,
                                                      const AudioOptions& options) {
  return open_decoded(
      [bytes]() -> Result<std::unique_ptr<ByteSource>> { return bytes_from_memory(bytes); },
      "audio in memory", options);
}

Result<std::vector<float>> read_all(AudioSource& source) {
  std::vector<float> samples;
  std::vector<float> part(16'384);
  for (;;) {
    const auto count = TRY(source.read(part));
    if (count == 0) return samples;
    samples.insert(samples.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(count));
  }
}

}  // namespace oasr
