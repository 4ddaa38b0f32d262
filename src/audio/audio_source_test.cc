// Files, pipes, raw PCM and content that is not audio.
#include "audio/audio_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sndfile.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <numeric>
#include <thread>

#include "audio/memory_audio.h"
#include "audio/wav_bytes.h"
#include "testing/paths.h"

namespace oasr {
namespace {

namespace fs = std::filesystem;
using testing::as_floats;
using testing::as_span;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::int16_bytes;
using testing::integer;
using testing::ramp;
using testing::real32;
using testing::wav;

class AudioFile : public ::testing::Test {
 protected:
  fs::path write(const std::string& name, const std::string& bytes) {
    const auto path = folder_.path() / name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  std::string message_of(const std::string& name, const std::string& bytes) {
    const auto source = open_audio(write(name, bytes));
    EXPECT_FALSE(source) << name;
    if (source) return {};
    EXPECT_EQ(source.error().code, ErrorCode::bad_audio);
    EXPECT_THAT(source.error().where, HasSubstr(name));
    return source.error().what;
  }

  testing::TemporaryFolder folder_;
};

// A named pipe that a thread fills.
class Fifo {
 public:
  using Write = std::function<bool(const std::string&)>;

  explicit Fifo(std::function<void(const Write&)> fill) : path_(folder_.path() / "fifo") {
    std::signal(SIGPIPE, SIG_IGN);
    EXPECT_EQ(::mkfifo(path_.c_str(), 0600), 0);
    writer_ = std::thread([this, fill = std::move(fill)] {
      std::ofstream file(path_, std::ios::binary);
      fill(
          [&](const std::string& bytes) { return static_cast<bool>(file << bytes << std::flush); });
    });
  }
  explicit Fifo(const std::string& bytes) : Fifo([bytes](const Write& write) { write(bytes); }) {}
  ~Fifo() { writer_.join(); }
  Fifo(const Fifo&) = delete;
  Fifo& operator=(const Fifo&) = delete;
  const fs::path& path() const { return path_; }

 private:
  testing::TemporaryFolder folder_;
  fs::path path_;
  std::thread writer_;
};

std::vector<float> samples_of(const fs::path& path, const AudioOptions& options = {}) {
  auto source = open_audio(path, options);
  EXPECT_TRUE(source) << source.error().message();
  if (!source) return {};
  auto samples = read_all(**source);
  EXPECT_TRUE(samples) << samples.error().message();
  EXPECT_EQ((*source)->truncated(), std::nullopt);
  return samples.value_or(std::vector<float>());
}

TEST_F(AudioFile, WhatIsNotAudioIsNamed) {
  EXPECT_EQ(message_of("empty.wav", ""), "is empty (0 bytes)");
  EXPECT_EQ(message_of("notes.wav", "Dear reader,\n\nthis is text.\n"),
            "is a text file, not audio");
  EXPECT_EQ(message_of("paper.mp3", "%PDF-1.7\n\x80\x81 and so on"),
            "is a PDF document, not audio");
  EXPECT_EQ(message_of("a.flac", std::string("PK\x03\x04 packed", 11)),
            "is a ZIP archive (or an office document), not audio");
  EXPECT_EQ(message_of("b.wav", "<!DOCTYPE html><html>404</html>"),
            "is an HTML page (a failed download?), not audio");
  EXPECT_EQ(message_of("c.wav", std::string(100'000, '\0')), "is a file of zeros, not audio");
  EXPECT_THAT(message_of("d.wav", int16_bytes(ramp(999))),
              HasSubstr("no audio format is recognised"));
}

TEST_F(AudioFile, FoldersAndMissingFilesAreNamed) {
  const auto folder = open_audio(folder_.path());
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code, ErrorCode::bad_audio);
  EXPECT_THAT(folder.error().what, HasSubstr("is a folder"));
  const auto missing = open_audio(folder_.path() / "nothing.wav");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  EXPECT_THAT(missing.error().where, HasSubstr("nothing.wav"));
}

// A playlist must not make us open what it names.
TEST_F(AudioFile, PlaylistsOpenNothing) {
  const auto secret = write("secret.wav", wav({}, int16_bytes(ramp(16'000))));
  const auto playlist = "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nfile://" + secret.string() +
                        "\n#EXT-X-ENDLIST\n";
  EXPECT_EQ(message_of("list.m3u8", playlist), "is a text file, not audio");
  const auto before = fs::current_path();
  fs::current_path(folder_.path());  // FFmpeg takes relative names for safe
  EXPECT_EQ(message_of("list.txt", "ffconcat version 1.0\nfile secret.wav\n"),
            "is a text file, not audio");
  fs::current_path(before);
}

TEST_F(AudioFile, TheNameDoesNotMatter) {
  const auto values = ramp(2000);
  EXPECT_EQ(samples_of(write("song.mp3", wav({}, int16_bytes(values)))), as_floats(values));
  EXPECT_EQ(samples_of(write("no_extension", wav({}, int16_bytes(values)))), as_floats(values));
}

struct Written {
  int format;
  const char* container;
  const char* codec;
};

// What libsndfile writes without loss comes back bit for bit; most of it through libav, big-endian
// WAV and the formats that libav does not know through libsndfile.
TEST_F(AudioFile, LosslessContainersKeepEveryBit) {
  const auto values = ramp(20'000);
  for (const auto& [format, container, codec] : {
           Written{SF_FORMAT_WAV | SF_FORMAT_PCM_16, "wav", "pcm_s16le"},
           Written{SF_FORMAT_WAVEX | SF_FORMAT_PCM_24, "wav", "pcm_s24le"},
           Written{SF_FORMAT_RF64 | SF_FORMAT_PCM_32, "wav", "pcm_s32le"},
           Written{SF_FORMAT_W64 | SF_FORMAT_FLOAT, "w64", "pcm_f32le"},
           Written{SF_FORMAT_AIFF | SF_FORMAT_PCM_16, "aiff", "pcm_s16be"},
           Written{SF_FORMAT_AU | SF_FORMAT_PCM_24, "au", "pcm_s24be"},
           Written{SF_FORMAT_CAF | SF_FORMAT_DOUBLE, "caf", "pcm_f64be"},
           Written{SF_FORMAT_NIST | SF_FORMAT_PCM_16, "nistsphere", "pcm_s16le"},
           Written{SF_FORMAT_VOC | SF_FORMAT_PCM_16, "voc", "pcm_s16le"},
           Written{SF_FORMAT_FLAC | SF_FORMAT_PCM_16, "flac", "flac"},
           Written{SF_FORMAT_FLAC | SF_FORMAT_PCM_24, "flac", "flac"},
           Written{SF_FORMAT_MAT5 | SF_FORMAT_PCM_16, "mat", "Signed 16 bit PCM"},
           Written{SF_FORMAT_PAF | SF_FORMAT_PCM_16, "epaf", "pcm_s16be"},
           Written{SF_ENDIAN_BIG | SF_FORMAT_WAV | SF_FORMAT_PCM_16, "wav", "Signed 16 bit PCM"},
           Written{SF_FORMAT_HTK | SF_FORMAT_PCM_16, "htk", "Signed 16 bit PCM"},
       }) {
    const auto path = folder_.path() / (std::string(container) + std::to_string(format));
    SF_INFO info{};
    info.samplerate = 16000;
    info.channels = 1;
    info.format = format;
    SNDFILE* file = sf_open(path.c_str(), SFM_WRITE, &info);
    ASSERT_NE(file, nullptr) << container;
    const auto count = static_cast<sf_count_t>(values.size());
    if (codec[4] == 'f') {  // floats are not scaled by sf_write_short
      sf_write_float(file, as_floats(values).data(), count);
    } else {
      sf_write_short(file, values.data(), count);
    }
    sf_close(file);
    EXPECT_EQ(samples_of(path), as_floats(values)) << container;
    const auto source = open_audio(path);
    ASSERT_TRUE(source);
    EXPECT_EQ((*source)->info().container, container);
    EXPECT_EQ((*source)->info().codec, codec);
    EXPECT_EQ((*source)->info().sample_rate, 16000);
  }
}

// 1 s of a 440 Hz tone beside moving pictures; AAC pads to whole frames, Opus is trimmed exactly.
TEST_F(AudioFile, VideoFilesGiveTheirSound) {
  const auto mp4 = samples_of(testing::test_data("audio/video.mp4"));
  EXPECT_EQ(mp4.size(), 16'347U);  // 22,528 samples at 22.05 kHz
  EXPECT_EQ(samples_of(testing::test_data("audio/video.webm")).size(), 16'000U);
  double power = 0;
  for (const auto sample : mp4) power += static_cast<double>(sample) * static_cast<double>(sample);
  EXPECT_NEAR(power / static_cast<double>(mp4.size()), 0.125 * 0.125 / 2, 5e-4);
}

TEST_F(AudioFile, CutVideoIsReportedAlthoughItsLengthIsNotTheSounds) {
  std::ifstream file(testing::test_data("audio/video.webm"), std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  auto source = open_audio(write("cut.webm", bytes.substr(0, bytes.size() * 6 / 10)));
  ASSERT_TRUE(source);
  ASSERT_TRUE(read_all(**source));
  EXPECT_THAT((*source)->truncated().value_or(""), HasSubstr("bytes that its header declares"));
}

TEST_F(AudioFile, RawPcmIsReadAsTold) {
  const auto values = ramp(5000);
  const auto raw = [](const std::string& encoding, int rate = 16000, int channels = 1) {
    return AudioOptions{.raw = RawFormat{encoding, rate, channels}};
  };
  EXPECT_EQ(samples_of(write("le", int16_bytes(values)), raw("s16le")), as_floats(values));
  EXPECT_EQ(samples_of(write("be", int16_bytes(values, true)), raw("s16be")), as_floats(values));
  EXPECT_THAT(samples_of(write("s24", integer(0x400000, 3)), raw("s24le")), ElementsAre(0.5F));
  EXPECT_THAT(samples_of(write("s32", integer(0xC0000000, 4)), raw("s32le")), ElementsAre(-0.5F));
  EXPECT_THAT(samples_of(write("f32", real32(0.3F)), raw("f32le")), ElementsAre(0.3F));
  EXPECT_THAT(samples_of(write("u8", "\xC0"), raw("u8")), ElementsAre(0.5F));
  EXPECT_THAT(samples_of(write("ulaw", "\x80"), raw("mulaw")), ElementsAre(8031.0F / 8192));
  EXPECT_THAT(samples_of(write("alaw", "\xAA"), raw("alaw")), ElementsAre(4032.0F / 4096));
  EXPECT_THAT(
      samples_of(write("stereo", integer(0x4000, 2) + integer(0, 2)), raw("s16le", 16000, 2)),
      ElementsAre(0.25F));
  EXPECT_EQ(samples_of(write("8k", int16_bytes(values)), raw("s16le", 8000)).size(), 10'000U);
  EXPECT_EQ(samples_of(write("wav", wav({}, int16_bytes(values))), raw("s16le")).size(), 5022U);
  EXPECT_EQ(samples_of(write("odd", int16_bytes(values) + "x"), raw("s16le")), as_floats(values));
}

TEST_F(AudioFile, RawOptionsThatMakeNoSenseAreRefused) {
  const auto path = write("raw", int16_bytes(ramp(100)));
  for (const auto& format : {RawFormat{"mp3", 16000, 1}, RawFormat{"s16le", 0, 1},
                             RawFormat{"s16le", 16000, 0}, RawFormat{"s16le", 16000, 100'000}}) {
    const auto source = open_audio(path, {.raw = format});
    ASSERT_FALSE(source) << format.encoding;
    EXPECT_EQ(source.error().code, ErrorCode::invalid_argument);
  }
  EXPECT_FALSE(open_audio(path, {.sample_rate = 0}));
}

TEST_F(AudioFile, EveryReadSizeGivesTheSameSamples) {
  const auto path =
      write("stereo.wav", wav({.channels = 2, .sample_rate = 44100}, int16_bytes(ramp(60'001))));
  const auto whole = samples_of(path);
  EXPECT_EQ(whole.size(), 10'884U);  // 30,000 frames
  for (const std::size_t size : {1, 7, 1000, 100'000}) {
    auto source = open_audio(path);
    ASSERT_TRUE(source);
    std::vector<float> samples, part(size);
    for (;;) {
      const auto count = (*source)->read(part);
      ASSERT_TRUE(count);
      samples.insert(samples.end(), part.begin(),
                     part.begin() + static_cast<std::ptrdiff_t>(*count));
      if (*count < size) break;  // only the end gives less than asked for
    }
    EXPECT_EQ(samples, whole) << size;
    EXPECT_EQ(*(*source)->read(part), 0U);
  }
}

TEST_F(AudioFile, RewindStartsAgain) {
  const auto values = ramp(30'000);
  const auto cut = testing::wav_declaring(100'000, int16_bytes(values));
  auto source = open_audio(write("a.wav", cut));
  ASSERT_TRUE(source);
  EXPECT_TRUE((*source)->rewindable());
  std::vector<float> part(10'000);
  ASSERT_TRUE((*source)->read(part));
  ASSERT_TRUE((*source)->rewind());
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_EQ((*source)->truncated(), std::nullopt);
    EXPECT_EQ(read_all(**source).value(), as_floats(values));
    EXPECT_TRUE((*source)->truncated());
    ASSERT_TRUE((*source)->rewind());
  }
}

TEST(AudioPipe, GivesTheSamplesOfTheFile) {
  const auto values = ramp(50'000);
  for (const auto& bytes :
       {wav({}, int16_bytes(values)), testing::wav_declaring(0xFFFFFFFF, int16_bytes(values)),
        testing::wav_declaring(0, int16_bytes(values)),
        testing::riff(testing::chunk("LIST", "INFOx") +
                      testing::chunk("fmt ", testing::format_body({})) +
                      testing::chunk("data", int16_bytes(values)) +
                      testing::chunk("LIST", std::string(500, 'x')))}) {
    const Fifo fifo(bytes);
    EXPECT_EQ(samples_of(fifo.path()), as_floats(values));
  }
  const Fifo raw(int16_bytes(values));
  EXPECT_EQ(samples_of(raw.path(), {.raw = RawFormat{}}), as_floats(values));
}

TEST(AudioPipe, ThatEndsEarlyIsReported) {
  const auto values = ramp(8000);
  const Fifo fifo(testing::wav_declaring(32'000, int16_bytes(values)));
  auto source = open_audio(fifo.path());
  ASSERT_TRUE(source);
  EXPECT_EQ(read_all(**source).value(), as_floats(values));
  EXPECT_EQ((*source)->truncated(), "the audio ends at 0.500 s: the header declares 1.000 s");
}

TEST(AudioPipe, CanNotBeRewound) {
  const Fifo fifo(wav({}, int16_bytes(ramp(100))));
  auto source = open_audio(fifo.path());
  ASSERT_TRUE(source);
  EXPECT_FALSE((*source)->rewindable());
  const auto status = (*source)->rewind();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::unsupported);
}

TEST(AudioPipe, EmptyAndForeignInputIsNamed) {
  const Fifo empty("");
  EXPECT_EQ(open_audio(empty.path()).error().what, "is empty (0 bytes)");
  const Fifo text("just some words\n");
  EXPECT_EQ(open_audio(text.path()).error().what, "is a text file, not audio");
}

// For its time the process can open no further file.
class NoDescriptorLeft {
 public:
  NoDescriptorLeft() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int lowest_free = ::dup(STDERR_FILENO);
    ::close(lowest_free);
    rlimit none = before_;
    none.rlim_cur = static_cast<rlim_t>(lowest_free);
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptorLeft() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptorLeft(const NoDescriptorLeft&) = delete;
  NoDescriptorLeft& operator=(const NoDescriptorLeft&) = delete;

 private:
  rlimit before_{};
};

TEST_F(AudioFile, WithoutADescriptorTheErrorSaysHowToGetOne) {
  const auto path = write("a.wav", wav({}, int16_bytes(ramp(50))));
  const NoDescriptorLeft none;
  const auto source = open_audio(path);
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().code, ErrorCode::io);
  EXPECT_THAT(source.error().remedy, HasSubstr("ulimit -n"));
  EXPECT_THAT(source.error().remedy, HasSubstr("--batch-size"));
}

TEST_F(AudioFile, ASecondReadingNeedsNoSecondDescriptor) {
  auto source = open_audio(write("a.wav", wav({}, int16_bytes(ramp(50)))));
  ASSERT_TRUE(source);
  const auto first = read_all(**source);
  const NoDescriptorLeft none;
  const auto again = (*source)->rewind();
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(*read_all(**source), *first);
}

// Runs `action` with `descriptor` as standard input.
template <class Action>
void with_standard_input(int descriptor, Action action) {
  const int saved = ::dup(STDIN_FILENO);
  ASSERT_GE(::dup2(descriptor, STDIN_FILENO), 0);
  ::close(descriptor);
  action();
  ::dup2(saved, STDIN_FILENO);
  ::close(saved);
}

TEST(StandardInput, ReadsAPipe) {
  const auto values = ramp(1000);  // fits into the pipe, so that no writer has to wait
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const auto bytes = testing::wav_declaring(0xFFFFFFFF, int16_bytes(values));
  ASSERT_EQ(::write(ends[1], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  ::close(ends[1]);
  with_standard_input(ends[0], [&] { EXPECT_EQ(samples_of("-"), as_floats(values)); });
}

TEST(StandardInput, ReadsARedirectedFileFromWhereItStands) {
  const auto values = ramp(1000);
  std::FILE* file = std::tmpfile();
  const auto bytes = "skipped" + wav({}, int16_bytes(values));
  std::fwrite(bytes.data(), 1, bytes.size(), file);
  std::fflush(file);
  const int descriptor = ::dup(::fileno(file));
  ::lseek(descriptor, 7, SEEK_SET);
  with_standard_input(descriptor, [&] {
    auto source = open_audio("-");
    ASSERT_TRUE(source);
    EXPECT_TRUE((*source)->rewindable());
    EXPECT_EQ(read_all(**source).value(), as_floats(values));
    ASSERT_TRUE((*source)->rewind());
    EXPECT_EQ(read_all(**source).value(), as_floats(values));
  });
  std::fclose(file);
}

std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

// 20 minutes of 44.1 kHz, 106 MB, through a pipe: the first tenth may fill caches and buffers.
TEST(AudioPipe, MemoryDoesNotGrowWithLength) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer keeps freed memory";
#endif
  constexpr int kSeconds = 1200;
  const Fifo fifo([](const Fifo::Write& write) {
    const auto second = int16_bytes(ramp(44'100));
    if (!write(wav({.sample_rate = 44100}, "").substr(0, 40) + integer(0xFFFFFFFF, 4))) return;
    for (int i = 0; i < kSeconds && write(second); ++i) {
    }
  });
  auto source = open_audio(fifo.path());
  ASSERT_TRUE(source) << source.error().message();
  std::vector<float> part(16'000);
  std::size_t total = 0, early = 0;
  for (;;) {
    const auto count = (*source)->read(part);
    ASSERT_TRUE(count);
    if (*count == 0) break;
    total += *count;
    if (early == 0 && total >= kSeconds * 1'600) early = resident_bytes();
  }
  EXPECT_EQ(total, kSeconds * std::size_t{16'000});
  EXPECT_LT(resident_bytes(), early + (std::size_t{256} << 10));
}

TEST(AudioFromSamples, AreResampledAndChecked) {
  auto source = audio_from_samples({0.5F, -0.25F, 3.0F}, 16000);
  ASSERT_TRUE(source);
  EXPECT_THAT(read_all(**source).value(), ElementsAre(0.5F, -0.25F, 3.0F));
  ASSERT_TRUE((*source)->rewind());
  EXPECT_EQ(read_all(**source)->size(), 3U);
  EXPECT_EQ(read_all(**audio_from_samples(std::vector<float>(44'100), 44'100))->size(), 16'000U);
  EXPECT_EQ(read_all(**audio_from_samples({}, 16000))->size(), 0U);
  const auto bad = audio_from_samples({0.0F, NAN}, 16000);
  ASSERT_FALSE(bad);
  EXPECT_THAT(bad.error().what, HasSubstr("sample 1 "));
  EXPECT_EQ(audio_from_samples({}, 0).error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace oasr
