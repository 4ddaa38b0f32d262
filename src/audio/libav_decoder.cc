// FFmpeg's libraries behind the Decoder interface.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/channel_layout.h>
#include <libavutil/opt.h>
}

#include "audio/decoder.h"
#include "audio/libav_frame.h"
#include "audio/stream_end.h"
#include "audio/wav_header.h"
#include "base/log.h"

namespace oasr {
namespace {

constexpr int kIoBuffer = 64 << 10;
constexpr int kPipeBuffer = 4 << 10;  // it is filled before anything is decoded: 0.13 s of 16-bit speech

// Containers whose header counts samples exactly.
constexpr std::string_view kExactContainers[] = {"wav",        "flac", "aiff", "au",
                                                 "nistsphere", "caf",  "w64"};
// Elsewhere a declared length may include the codec's padding.
constexpr double kLengthTolerance = 0.25;  // s

constexpr std::size_t kOggPage = 65'536;
constexpr int kMostPaddings = 8;
// FFmpeg notes where packets lie, for seeks that never come: its memory would grow with length.
constexpr unsigned kIndexBytes = 64 << 10;

std::string av_text(int error) {
  char text[AV_ERROR_MAX_STRING_SIZE] = {};
  av_strerror(error, text, sizeof(text));
  return text;
}

void forward_log(void* context, int level, const char* format, va_list arguments) {
  if (level > AV_LOG_WARNING) return;
  char line[512];
  int prefix = 1;
  av_log_format_line2(context, level, format, arguments, line, sizeof(line), &prefix);
  std::string_view view(line);
  while (!view.empty() && view.back() == '\n') view.remove_suffix(1);
  log(LogLevel::debug, view);
}

// FFmpeg prints to standard error unless told otherwise, for the whole process.
void silence_libav() {
  static std::once_flag once;
  std::call_once(once, [] { av_log_set_callback(forward_log); });
}

struct CloseFormat {
  void operator()(AVFormatContext* format) const { avformat_close_input(&format); }
};
struct FreeIo {
  void operator()(AVIOContext* io) const {
    av_freep(&io->buffer);
    avio_context_free(&io);
  }
};
struct FreeCodec {
  void operator()(AVCodecContext* codec) const { avcodec_free_context(&codec); }
};
struct FreePacket {
  void operator()(AVPacket* packet) const { av_packet_free(&packet); }
};
struct FreeFrame {
  void operator()(AVFrame* frame) const { av_frame_free(&frame); }
};

// A playlist or a movie with references must not make us open other files or addresses. Demuxers
// within demuxers do not inherit this function, but kNoProtocol, a list that allows nothing.
constexpr char kNoProtocol[] = "none";
int refuse_open(AVFormatContext*, AVIOContext**, const char*, int, AVDictionary**) {
  return AVERROR(EPERM);
}

class LibavDecoder final : public Decoder {
 public:
  explicit LibavDecoder(ByteSource& bytes) : bytes_(&bytes) {}

  Status open(const std::optional<RawFormat>& raw);
  const AudioInfo& info() const override { return info_; }
  Result<bool> next(SampleBlock& block) override;

 private:
  static int read_bytes(void* self, std::uint8_t* buffer, int size);
  static std::int64_t seek_bytes(void* self, std::int64_t offset, int whence);

  Status read_header();
  Status open_container(const std::optional<RawFormat>& raw);
  Status open_codec();
  Status decode_first();
  Result<bool> decode(SampleBlock& block);
  void feed();
  void note_declared_length();
  bool trim_packet();
  void note_packet();
  void note_gap(std::int64_t timestamp);
  void note_damage(const std::string& what);
  void finish();
  std::string missing_end();
  std::string short_length();
  int rate() const { return std::max(info_.sample_rate, 1); }
  bool is_pcm() const { return info_.codec.rfind("pcm_", 0) == 0; }
  bool counts_exactly() const {
    return std::find(std::begin(kExactContainers), std::end(kExactContainers), info_.container) !=
           std::end(kExactContainers);
  }

  ByteSource* bytes_;
  std::vector<std::unique_ptr<ByteSource>> padded_;  // wrappers around bytes_
  std::vector<std::byte> tail_;                      // of a pipe: the last bytes read
  std::optional<std::uint64_t> file_bytes_;          // that the container declares
  std::optional<Error> read_error_;
  std::unique_ptr<AVIOContext, FreeIo> io_;
  std::unique_ptr<AVFormatContext, CloseFormat> format_;
  std::unique_ptr<AVCodecContext, FreeCodec> codec_;
  std::unique_ptr<AVPacket, FreePacket> packet_{av_packet_alloc()};
  std::unique_ptr<AVFrame, FreeFrame> frame_{av_frame_alloc()};
  AVStream* stream_ = nullptr;
  AudioInfo info_;
  bool raw_ = false;
  std::optional<WavHeader> wav_;
  std::optional<std::uint64_t> declared_frames_;
  std::optional<SampleBlock> first_;
  std::uint64_t frames_ = 0;         // decoded so far
  std::uint64_t trimmed_bytes_ = 0;  // PCM bytes that make no whole sample
  std::size_t packet_size_ = 0;
  std::optional<std::size_t> mp3_frame_;  // bytes that the last packet should have
  std::optional<double> first_time_;      // timestamp of the first frame, s
  double gaps_ = 0;                       // s
  std::string first_gap_;
  std::uint64_t damaged_packets_ = 0;
  std::string damage_;
  bool ended_ = false;
};

int LibavDecoder::read_bytes(void* self, std::uint8_t* buffer, int size) {
  auto& decoder = *static_cast<LibavDecoder*>(self);
  auto* const start = reinterpret_cast<std::byte*>(buffer);
  auto count = decoder.bytes_->read({start, static_cast<std::size_t>(std::max(size, 0))});
  if (!count) {
    decoder.read_error_ = count.error();
    return AVERROR(EIO);
  }
  if (!decoder.bytes_->size()) {
    auto& tail = decoder.tail_;
    tail.insert(tail.end(), start, start + *count);
    if (tail.size() > 4 * kOggPage) tail.erase(tail.begin(), tail.end() - kOggPage);
  }
  return *count == 0 ? AVERROR_EOF : static_cast<int>(*count);
}

std::int64_t LibavDecoder::seek_bytes(void* self, std::int64_t offset, int whence) {
  auto& bytes = *static_cast<LibavDecoder*>(self)->bytes_;
  const auto size = static_cast<std::int64_t>(*bytes.size());
  std::int64_t base = 0;
  switch (whence & ~AVSEEK_FORCE) {
    case AVSEEK_SIZE:
      return size;
    case SEEK_SET:
      break;
    case SEEK_CUR:
      base = static_cast<std::int64_t>(bytes.position());
      break;
    case SEEK_END:
      base = size;
      break;
    default:
      return AVERROR(EINVAL);
  }
  if (offset < -base || offset > INT64_MAX - base) return AVERROR(EINVAL);
  bytes.seek(static_cast<std::uint64_t>(base + offset));
  return base + offset;
}

Status LibavDecoder::open(const std::optional<RawFormat>& raw) {
  silence_libav();
  if (!raw) TRY(read_header());
  TRY(open_container(raw));
  TRY(open_codec());
  note_declared_length();
  return decode_first();
}

Status LibavDecoder::read_header() {
  wav_ = TRY(read_wav_header(*bytes_));
  for (int i = 0; wav_ && wav_->missing_padding && i < kMostPaddings; ++i) {
    padded_.push_back(with_zero_byte(*bytes_, *wav_->missing_padding));
    bytes_ = padded_.back().get();
    wav_ = TRY(read_wav_header(*bytes_));
  }
  if (!padded_.empty()) warnings_.emplace_back("the WAV chunks are not padded to even sizes");
  std::byte head[kHeadBytes];
  const auto count = TRY(bytes_->peek(0, head));
  if (!wav_ || !wav_->is_pcm()) file_bytes_ = declared_file_bytes(std::span(head).first(count));
  return {};
}

Status LibavDecoder::open_container(const std::optional<RawFormat>& raw) {
  const bool seekable = bytes_->size().has_value();
  const int size = seekable ? kIoBuffer : kPipeBuffer;
  auto* buffer = static_cast<unsigned char*>(av_malloc(static_cast<std::size_t>(size)));
  io_.reset(avio_alloc_context(buffer, size, 0, this, read_bytes, nullptr,
                               seekable ? seek_bytes : nullptr));
  io_->seekable = seekable ? AVIO_SEEKABLE_NORMAL : 0;
  // All is known of PCM. Looking ahead would delay a live stream, and takes 5 ms of a file: FFmpeg tries all its
  // formats on ever more of what a WAV holds.
  const bool known = raw || (wav_ && wav_->is_pcm() && !(seekable && TRY(may_hold_dts(*bytes_, *wav_))));
  AVFormatContext* format = avformat_alloc_context();
  format->pb = io_.get();
  format->flags |= AVFMT_FLAG_CUSTOM_IO;
  format->io_open = refuse_open;
  format->protocol_whitelist = av_strdup(kNoProtocol);
  format->max_index_size = kIndexBytes;
  if (known) format->max_probe_packets = 1;
  const AVInputFormat* input = nullptr;
  AVDictionary* options = nullptr;
  if (raw) {
    raw_ = true;
    input = av_find_input_format(raw->encoding.c_str());
    av_dict_set_int(&options, "sample_rate", raw->sample_rate, 0);
    av_dict_set(&options, "ch_layout", fmt::format("{}C", raw->channels).c_str(), 0);
  }
  int error = avformat_open_input(&format, "", input, &options);
  av_dict_free(&options);
  if (error < 0) {  // has freed `format`
    if (read_error_) return unexpected(*read_error_);
    return unexpected(ErrorCode::bad_audio, "no audio format is recognised in it", {},
                      "headerless PCM needs --raw");
  }
  format_.reset(format);
  for (unsigned i = 0; i < format_->nb_streams; ++i) {
    if (format_->streams[i]->codecpar->codec_type != AVMEDIA_TYPE_AUDIO) {
      format_->streams[i]->discard = AVDISCARD_ALL;
    }
  }
  if (known) return {};
  error = avformat_find_stream_info(format_.get(), nullptr);
  if (error < 0) return unexpected(ErrorCode::bad_audio, av_text(error));
  return {};
}

Status LibavDecoder::open_codec() {
  const AVCodec* codec = nullptr;
  const int index = av_find_best_stream(format_.get(), AVMEDIA_TYPE_AUDIO, -1, -1, &codec, 0);
  const std::string_view names = format_->iformat->name;
  info_.container = names.substr(0, names.find(','));
  if (index == AVERROR_DECODER_NOT_FOUND) {
    return unexpected(ErrorCode::unsupported, "FFmpeg here has no decoder for its audio stream");
  }
  if (index < 0) {
    return unexpected(ErrorCode::bad_audio,
                      fmt::format("no audio stream in it (container {})", info_.container));
  }
  for (unsigned i = 0; i < format_->nb_streams; ++i) {
    if (static_cast<int>(i) != index) format_->streams[i]->discard = AVDISCARD_ALL;
  }
  stream_ = format_->streams[index];
  info_.codec = avcodec_get_name(stream_->codecpar->codec_id);
  info_.sample_rate = stream_->codecpar->sample_rate;
  info_.channels = stream_->codecpar->ch_layout.nb_channels;
  codec_.reset(avcodec_alloc_context3(codec));
  int error = avcodec_parameters_to_context(codec_.get(), stream_->codecpar);
  codec_->pkt_timebase = stream_->time_base;
  codec_->thread_count = 1;
  // FLAC's checksums are sure; those of other codecs are often wrong in sound files.
  if (codec_->codec_id == AV_CODEC_ID_FLAC)
    codec_->err_recognition |= AV_EF_CRCCHECK | AV_EF_EXPLODE;
  if (error >= 0) error = avcodec_open2(codec_.get(), codec, nullptr);
  if (error < 0) {
    return unexpected(ErrorCode::bad_audio, fmt::format("the {} decoder refuses the stream: {}",
                                                        info_.codec, av_text(error)));
  }
  return {};
}

void LibavDecoder::note_declared_length() {
  if (raw_) return;
  if (wav_) {
    declared_frames_ = wav_->frames();
    if (declared_frames_ || wav_->is_pcm()) return;
  }
  if (format_->duration_estimation_method == AVFMT_DURATION_FROM_BITRATE) return;
  std::optional<double> seconds;
  if (stream_->duration != AV_NOPTS_VALUE && stream_->duration > 0) {
    seconds = static_cast<double>(stream_->duration) * av_q2d(stream_->time_base);
  } else if (format_->nb_streams == 1 && format_->duration != AV_NOPTS_VALUE) {
    seconds = static_cast<double>(format_->duration) / AV_TIME_BASE;  // of several: the longest's
  }
  if (!seconds || info_.sample_rate <= 0 || *seconds > 1e9) return;
  declared_frames_ = static_cast<std::uint64_t>(std::llround(*seconds * info_.sample_rate));
}

Status LibavDecoder::decode_first() {
  if (wav_ && wav_->empty) {
    ended_ = true;
    return {};
  }
  SampleBlock block;
  const bool some = TRY(decode(block));
  if (some) {
    info_.sample_rate = block.sample_rate;
    info_.channels = block.channels;
    first_ = std::move(block);
    if (!damage_.empty()) truncated_ = damage_;
  } else if (read_error_) {
    return unexpected(*read_error_);
  } else if (!damage_.empty()) {
    return unexpected(ErrorCode::bad_audio,
                      fmt::format("no {} packet can be decoded: {}", info_.codec, damage_));
  } else if (!is_pcm()) {
    return unexpected(ErrorCode::bad_audio, fmt::format("no {} frame in it (container {})",
                                                        info_.codec, info_.container));
  }
  if (declared_frames_) {
    info_.declared_seconds = static_cast<double>(*declared_frames_) / rate();
  }
  return check_format(info_.sample_rate, info_.channels);
}

Result<bool> LibavDecoder::next(SampleBlock& block) {
  if (first_) {
    block = std::move(*first_);
    first_.reset();
    return true;
  }
  const bool some = TRY(decode(block));
  if (!some) finish();
  return some;
}

Result<bool> LibavDecoder::decode(SampleBlock& block) {
  while (!ended_) {
    const int error = avcodec_receive_frame(codec_.get(), frame_.get());
    if (error == AVERROR(EAGAIN)) {
      feed();
    } else if (error == AVERROR_EOF) {
      ended_ = true;
    } else if (error < 0) {
      note_damage(av_text(error));
    } else if (frame_->nb_samples > 0) {
      auto copied = copy_frame(*frame_, block);
      const auto timestamp = frame_->best_effort_timestamp;
      av_frame_unref(frame_.get());
      if (!copied) return unexpected(copied.error());
      note_gap(timestamp);
      frames_ += block.samples.size() / static_cast<std::size_t>(block.channels);
      return true;
    }
  }
  return false;
}

// Hands the decoder one packet of the stream, or the end.
void LibavDecoder::feed() {
  const int error = av_read_frame(format_.get(), packet_.get());
  if (error < 0) {
    if (error != AVERROR_EOF && !read_error_) note_damage(av_text(error));
    if (read_error_) note_damage(read_error_->what);
    avcodec_send_packet(codec_.get(), nullptr);
    return;
  }
  if (packet_->stream_index == stream_->index && trim_packet()) {
    note_packet();
    const int sent = avcodec_send_packet(codec_.get(), packet_.get());
    if (sent < 0 && sent != AVERROR_EOF) note_damage(av_text(sent));
  }
  av_packet_unref(packet_.get());
}

// PCM: cuts bytes after the last whole sample off the packet. False if nothing is left.
bool LibavDecoder::trim_packet() {
  const auto& parameters = *stream_->codecpar;
  const int frame =
      av_get_exact_bits_per_sample(parameters.codec_id) / 8 * parameters.ch_layout.nb_channels;
  if (!is_pcm() || frame == 0 || packet_->size % frame == 0) return true;
  const int rest = packet_->size % frame;
  trimmed_bytes_ += static_cast<std::uint64_t>(rest);
  av_shrink_packet(packet_.get(), packet_->size - rest);
  return packet_->size > 0;
}

void LibavDecoder::note_packet() {
  if (codec_->codec_id != AV_CODEC_ID_MP3) return;
  packet_size_ = static_cast<std::size_t>(packet_->size);
  mp3_frame_ = mp3_frame_bytes({reinterpret_cast<const std::byte*>(packet_->data), packet_size_});
}

// Notes where timestamps run ahead of the samples: lost packets, or a pause of the recorder.
void LibavDecoder::note_gap(std::int64_t timestamp) {
  if (timestamp == AV_NOPTS_VALUE) return;
  const double time = static_cast<double>(timestamp) * av_q2d(stream_->time_base);
  const double decoded = static_cast<double>(frames_) / rate();
  if (!first_time_) first_time_ = time - decoded;
  const double gap = time - *first_time_ - decoded - gaps_;
  if (gap < kLengthTolerance) return;
  if (first_gap_.empty()) first_gap_ = seconds_text(frames_, rate());
  gaps_ += gap;
  // These two count samples, so that something is lost; elsewhere a recorder may have paused.
  if (info_.container == "ogg" || info_.container == "flac") {
    note_damage(fmt::format("{:.3f} s are missing", gap));
  }
}

void LibavDecoder::note_damage(const std::string& what) {
  ++damaged_packets_;
  if (!damage_.empty()) return;
  damage_ = fmt::format("damaged at {}: {}", seconds_text(frames_, rate()), what);
}

// What says that the end of the file is not there, other than its length; else an empty text.
std::string LibavDecoder::missing_end() {
  const auto here = bytes_->size().value_or(bytes_->position());
  if (file_bytes_ && here < *file_bytes_) {
    return fmt::format("the file has {} of the {} bytes that its header declares", here,
                       *file_bytes_);
  }
  if (mp3_frame_ && packet_size_ < *mp3_frame_) {
    return fmt::format("the last frame has {} of its {} bytes", packet_size_, *mp3_frame_);
  }
  if (info_.container != "ogg") return {};
  if (bytes_->size()) {
    tail_.resize(kOggPage);
    const auto count = bytes_->peek(here - std::min<std::uint64_t>(here, kOggPage), tail_);
    tail_.resize(count ? *count : 0);
  }
  const auto end = ogg_end(tail_);
  if (end == OggEnd::unmarked)
    warnings_.emplace_back("the Ogg stream has no end mark: it may be cut");
  return end == OggEnd::cut ? "the file ends inside an Ogg page" : "";
}

// How the decoded length falls short of the declared one; else an empty text.
std::string LibavDecoder::short_length() {
  if (!declared_frames_) return {};
  const auto declared = *declared_frames_;
  const auto heard = static_cast<double>(frames_) + gaps_ * rate();
  const auto tolerance = counts_exactly() ? 0.0 : kLengthTolerance * rate();
  if (heard + tolerance < static_cast<double>(declared)) {
    return fmt::format("the header declares {}", seconds_text(declared, rate()));
  }
  if (counts_exactly() && frames_ > declared) {
    warnings_.push_back(fmt::format("the header declares {}, {} are there and used",
                                    seconds_text(declared, rate()), seconds_text(frames_, rate())));
  }
  return {};
}

void LibavDecoder::finish() {
  std::string text = damage_;
  if (damaged_packets_ > 1) text += fmt::format(" ({} places)", damaged_packets_);
  auto end = missing_end();
  const auto length = short_length();
  if (!end.empty() && !length.empty()) end += "; ";
  end += length;
  if (!end.empty()) {
    if (!text.empty()) text += "; ";
    text += fmt::format("the audio ends at {}: {}", seconds_text(frames_, rate()), end);
  }
  if (!text.empty()) truncated_ = text;
  if (trimmed_bytes_ > 0) {
    warnings_.push_back(
        fmt::format("{} bytes after the last whole sample are ignored", trimmed_bytes_));
  }
  if (gaps_ > 0) {
    warnings_.push_back(
        fmt::format("the timestamps jump ahead by {:.3f} s in all, first at {}: times "
                    "after that are early by as much",
                    gaps_, first_gap_));
  }
}

}  // namespace

Result<std::unique_ptr<Decoder>> open_libav(ByteSource& bytes,
                                            const std::optional<RawFormat>& raw) {
  auto decoder = std::make_unique<LibavDecoder>(bytes);
  TRY(decoder->open(raw));
  return std::unique_ptr<Decoder>(std::move(decoder));
}

}  // namespace oasr
