// WAV files of every kind, right and wrong, read from memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "audio/audio_source.h"
#include "audio/memory_audio.h"
#include "audio/mixdown.h"
#include "audio/wav_bytes.h"
#include "audio/wav_header.h"

namespace oasr {
namespace {

using testing::as_floats;
using testing::as_span;
using testing::chunk;
using ::testing::ElementsAre;
using testing::Format;
using testing::format_body;
using ::testing::HasSubstr;
using testing::int16_bytes;
using testing::integer;
using testing::ramp;
using testing::real32;
using testing::real64;
using testing::riff;
using testing::wav;
using testing::wav_declaring;

struct Decoded {
  std::vector<float> samples;
  AudioInfo info;
  std::optional<std::string> truncated;
  std::vector<std::string> warnings;
};

Result<Decoded> decode(const std::string& file, const AudioOptions& options = {}) {
  auto source = TRY(open_audio_bytes(as_span(file), options));
  auto samples = TRY(read_all(*source));
  return Decoded{std::move(samples), source->info(), source->truncated(), source->warnings()};
}

std::vector<float> samples_of(const std::string& file, const AudioOptions& options = {}) {
  auto decoded = decode(file, options);
  EXPECT_TRUE(decoded) << decoded.error().message();
  if (!decoded) return {};
  EXPECT_EQ(decoded->truncated, std::nullopt);
  return decoded->samples;
}

Error error_of(const std::string& file, const AudioOptions& options = {}) {
  auto decoded = decode(file, options);
  EXPECT_FALSE(decoded) << decoded->samples.size() << " samples";
  return decoded ? Error{} : decoded.error();
}

TEST(Wav, SixteenBitAtTheTargetRatePassesThroughExactly) {
  const auto values = ramp(10'000);
  EXPECT_EQ(samples_of(wav({}, int16_bytes(values))), as_floats(values));
}

TEST(Wav, EverySampleTypeIsScaledToOne) {
  EXPECT_THAT(samples_of(wav({.bits = 8}, std::string("\x00\x80\xC0\xFF", 4))),
              ElementsAre(-1.0F, 0.0F, 0.5F, 127.0F / 128));
  EXPECT_THAT(
      samples_of(wav({.bits = 24}, integer(0x800000, 3) + integer(0x400000, 3) + integer(1, 3))),
      ElementsAre(-1.0F, 0.5F, 1.0F / 8388608));
  EXPECT_THAT(samples_of(wav({.bits = 32}, integer(0x80000000, 4) + integer(0x40000000, 4))),
              ElementsAre(-1.0F, 0.5F));
  EXPECT_THAT(samples_of(wav({.tag = 3, .bits = 32}, real32(-1.5F) + real32(0.25F))),
              ElementsAre(-1.5F, 0.25F));
  EXPECT_THAT(samples_of(wav({.tag = 3, .bits = 64}, real64(-0.5) + real64(0.125))),
              ElementsAre(-0.5F, 0.125F));
}

// G.711, table 1: the largest values are 4032 of 4096 (A-law) and 8031 of 8192 (mu-law).
TEST(Wav, LogarithmicSamplesAreExpanded) {
  EXPECT_THAT(samples_of(wav({.tag = 6, .bits = 8}, "\xAA\x2A")),
              ElementsAre(4032.0F / 4096, -4032.0F / 4096));
  EXPECT_THAT(samples_of(wav({.tag = 7, .bits = 8}, std::string("\x80\x00\xFF", 3))),
              ElementsAre(8031.0F / 8192, -8031.0F / 8192, 0.0F));
}

TEST(Wav, ExtensibleHeadersNameTheSubFormat) {
  const std::string guid_rest("\x00\x00\x00\x00\x10\x00\x80\x00\x00\xAA\x00\x38\x9B\x71", 14);
  const auto extensible = [&](int tag, int bits) {
    return format_body({.tag = 0xFFFE, .bits = bits}) + integer(22, 2) +
           integer(static_cast<unsigned>(bits), 2) + integer(4, 4) +
           integer(static_cast<unsigned>(tag), 2) + guid_rest;
  };
  EXPECT_THAT(
      samples_of(riff(chunk("fmt ", extensible(1, 16)) + chunk("data", integer(0x4000, 2)))),
      ElementsAre(0.5F));
  EXPECT_THAT(samples_of(riff(chunk("fmt ", extensible(3, 32)) + chunk("data", real32(0.75F)))),
              ElementsAre(0.75F));
}

TEST(Wav, Rf64TakesItsSizeFromDs64) {
  const auto values = ramp(300);
  const auto data = int16_bytes(values);
  const auto file = [&](std::uint64_t size) {
    return "RF64" + integer(0xFFFFFFFF, 4) + "WAVE" +
           chunk("ds64",
                 integer(1000, 8) + integer(size, 8) + integer(size / 2, 8) + integer(0, 4)) +
           chunk("fmt ", format_body({})) + "data" + integer(0xFFFFFFFF, 4) + data;
  };
  EXPECT_EQ(samples_of(file(data.size())), as_floats(values));
  const auto cut = decode(file(5'000'000'000));
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->samples, as_floats(values));
  EXPECT_THAT(cut->truncated.value_or(""), HasSubstr("declares 156250.000 s"));
}

TEST(Wav, RifxIsBigEndian) {
  const auto values = ramp(100);
  const auto big = [](std::uint64_t value, int size) { return integer(value, size, true); };
  const std::string chunks = "fmt " + big(16, 4) + big(1, 2) + big(1, 2) + big(16000, 4) +
                             big(32000, 4) + big(2, 2) + big(16, 2) + "data" + big(200, 4) +
                             int16_bytes(values, true);
  const auto file = "RIFX" + big(4 + chunks.size(), 4) + "WAVE" + chunks;
  EXPECT_EQ(samples_of(file), as_floats(values));
  const auto cut = decode(file.substr(0, file.size() - 40));
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->samples.size(), 80U);
  EXPECT_EQ(cut->truncated, "the audio ends at 0.005 s: the header declares 0.006 s");
}

// Recorders and pipes leave such sizes: they mean "until the end".
TEST(Wav, SizesThatTheWriterCouldNotKnowAreIgnored) {
  const auto values = ramp(5000);
  for (const auto size : {0U, 0xFFFFFFFFU, 0xFFFFFFDBU, 0x7FFFFFFFU, 0x80000000U, 0x7FFFF000U}) {
    EXPECT_EQ(samples_of(wav_declaring(size, int16_bytes(values))), as_floats(values)) << size;
  }
}

// Twelve DTS frames of 1024 bytes and 512 samples as a music disc has them: words of 16 bits, low byte first.
std::string dts_words() {
  // Sync; a normal frame of 32 + 0 samples, no CRC, 16 blocks, 1024 bytes, two channels, 44.1 kHz, open bit rate.
  const std::uint64_t fields = (((((1ULL << 5 | 31) << 1 | 0) << 7 | 15) << 14 | 1023) << 6 | 2) << 4 | 8;
  std::string header = "\x7F\xFE\x80\x01";
  for (int shift = 32; shift >= 0; shift -= 8) header += static_cast<char>(fields << 2 >> shift & 0xFF);
  std::minstd_rand bytes(1);
  std::string frames;
  for (int i = 0; i < 12; ++i) {
    std::string frame = header + std::string(4, '\0');
    while (frame.size() < 1024) frame += static_cast<char>(bytes() >> 8 & 0xFF);
    frames += frame;
  }
  for (std::size_t i = 0; i + 1 < frames.size(); i += 2) std::swap(frames[i], frames[i + 1]);
  return frames;
}

// The frames here hold noise: FFmpeg recognises them and can not decode them, which is said.
TEST(Wav, DtsThatIsCalledPcmIsRecognised) {
  const auto decoded = decode(wav({.channels = 2}, dts_words()));
  ASSERT_TRUE(decoded) << decoded.error().message();
  EXPECT_THAT(decoded->warnings, ElementsAre(HasSubstr("FFmpeg can not decode it")));
}

TEST(Wav, PcmWithTheSyncWordsOfDtsStaysPcm) {
  auto values = ramp(30'000);
  for (const std::size_t at : {100u, 200u, 9000u}) {
    values[at] = 0x7FFE;
    values[at + 1] = -0x7FFF;
  }
  EXPECT_EQ(samples_of(wav({}, int16_bytes(values))), as_floats(values));
}

TEST(Wav, AShortDataChunkIsReadAndReported) {
  const auto values = ramp(8000);
  const auto decoded = decode(wav_declaring(32000, int16_bytes(values)));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->samples, as_floats(values));
  EXPECT_EQ(decoded->truncated, "the audio ends at 0.500 s: the header declares 1.000 s");
  EXPECT_EQ(decoded->info.declared_seconds, 1.0);
}

TEST(Wav, ChunksBeforeAndAfterTheDataAreNotAudio) {
  const auto values = ramp(1001);
  const auto format = chunk("fmt ", format_body({}));
  const auto data = chunk("data", int16_bytes(values));
  const auto list = chunk("LIST", "INFOISFT" + integer(13, 4) + "Lavf59.27.100" + '\0');
  EXPECT_EQ(samples_of(riff(format + list + data)), as_floats(values));
  EXPECT_EQ(samples_of(riff(list + format + data + list)), as_floats(values));
  EXPECT_EQ(samples_of(riff(format + chunk("JUNK", std::string(100'001, 'x')) + data)),
            as_floats(values));
}

TEST(Wav, AnOddChunkMayLackItsPaddingByte) {
  const auto values = ramp(1000);
  const auto file = riff(chunk("fmt ", format_body({})) + "LIST" + integer(5, 4) + "INFOx" +
                         "fact" + integer(3, 4) + "abc" + chunk("data", int16_bytes(values)));
  const auto decoded = decode(file);
  ASSERT_TRUE(decoded) << decoded.error().message();
  EXPECT_EQ(decoded->samples, as_floats(values));
  EXPECT_EQ(decoded->truncated, std::nullopt);
  EXPECT_THAT(decoded->warnings, ElementsAre(HasSubstr("not padded")));
}

TEST(Wav, AnOddByteAfterTheLastSampleIsIgnoredWithAWarning) {
  const auto values = ramp(3000);
  const auto decoded = decode(wav({}, int16_bytes(values) + "x"));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->samples, as_floats(values));
  EXPECT_EQ(decoded->truncated, std::nullopt);
  EXPECT_THAT(decoded->warnings, ElementsAre("1 bytes after the last whole sample are ignored"));
}

TEST(Wav, AHeaderWithoutSamplesIsAValidEmptyStream) {
  EXPECT_TRUE(samples_of(wav({}, "")).empty());
  EXPECT_TRUE(
      samples_of(riff(chunk("fmt ", format_body({})) + chunk("data", "") + chunk("LIST", "INFO")))
          .empty());
}

TEST(Wav, OneSampleIsOneSample) {
  EXPECT_THAT(samples_of(wav({}, integer(0x4000, 2))), ElementsAre(0.5F));
}

TEST(Wav, ChannelsAreAveragedOrSelected) {
  const std::vector<std::int16_t> frames = {16384, -16384, 8192, 8192, 32767, -32768, 3, 0};
  const auto file = wav({.channels = 4}, int16_bytes(frames));
  EXPECT_THAT(samples_of(file), ElementsAre(4096.0F / 32768, 0.5F / 32768));
  EXPECT_THAT(samples_of(file, {.channel = 1}), ElementsAre(-0.5F, -1.0F));
  EXPECT_THAT(samples_of(file, {.channel = 3}), ElementsAre(0.25F, 0.0F));
  const auto error = error_of(file, {.channel = 4});
  EXPECT_EQ(error.code, ErrorCode::invalid_argument);
  EXPECT_THAT(error.what, HasSubstr("no channel 4: the audio has 4"));
  EXPECT_EQ(error_of(file, {.channel = -1}).code, ErrorCode::invalid_argument);
}

TEST(Wav, FloatSamplesMayBeLoud) {
  EXPECT_THAT(samples_of(wav({.tag = 3, .channels = 2, .bits = 32}, real32(kLoudest) + real32(kLoudest))),
              ElementsAre(kLoudest));
}

TEST(Wav, NanAndInfinityAreErrorsThatNameThePosition) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const auto stereo = [](std::size_t bad_index, float bad) {
    std::string data;
    for (std::size_t i = 0; i < 40'000; ++i) data += real32(i == bad_index ? bad : 0.1F);
    return wav({.tag = 3, .channels = 2, .bits = 32}, data);
  };
  const auto error = error_of(stereo(24'001, nan));
  EXPECT_EQ(error.code, ErrorCode::bad_audio);
  EXPECT_EQ(error.what, "sample 12000 (0.750 s) of channel 1 is not a number");
  EXPECT_THAT(error_of(stereo(0, -infinity)).what,
              HasSubstr("sample 0 (0.000 s) of channel 0 is infinite"));
  // Too large for a float, and so infinite to everything that follows.
  EXPECT_THAT(error_of(wav({.tag = 3, .bits = 64}, real64(1e300))).what, HasSubstr("infinite"));
  // Finite, but not what is computed of it.
  EXPECT_THAT(error_of(stereo(24'001, 3e38F)).what, HasSubstr("channel 1 is 3e+38, which is beyond"));
  // The other channel can still be used.
  EXPECT_EQ(samples_of(stereo(24'001, nan), {.channel = 0}).size(), 20'000U);
}

TEST(Wav, AnErrorStaysAnError) {
  const auto file = wav({.tag = 3, .bits = 32}, real32(std::numeric_limits<float>::quiet_NaN()) +
                                                    std::string(400'000, '\0'));
  auto source = open_audio_bytes(as_span(file));
  ASSERT_TRUE(source);
  std::vector<float> out(100);
  EXPECT_FALSE((*source)->read(out));
  EXPECT_FALSE((*source)->read(out));
  ASSERT_TRUE((*source)->rewind());
  EXPECT_FALSE((*source)->read(out));
}

TEST(Wav, AbsurdHeadersAreRefusedByNumber) {
  const auto data = std::string(64, '\0');
  const auto what = [&](const Format& format) { return error_of(wav(format, data)).what; };
  EXPECT_THAT(what({.channels = 0}), HasSubstr("declares 0 channels"));
  EXPECT_THAT(what({.channels = 65535}), HasSubstr("declares 65535 channels"));
  EXPECT_THAT(what({.sample_rate = 0}), HasSubstr("sample rate of 0 Hz"));
  EXPECT_THAT(what({.sample_rate = 1'000'000'000}), HasSubstr("sample rate of 1000000000 Hz"));
  EXPECT_THAT(what({.bits = 0}), HasSubstr("0 bits"));
  EXPECT_THAT(what({.bits = 4096}), HasSubstr("4096 bits"));
  auto body = format_body({});
  body[12] = 7;  // bytes a frame
  EXPECT_THAT(error_of(riff(chunk("fmt ", body) + chunk("data", data))).what,
              HasSubstr("contradicts itself: 16 bits, 1 channels, 7 bytes a frame"));
}

TEST(Wav, MissingChunksAreNamed) {
  const auto format = chunk("fmt ", format_body({}));
  EXPECT_THAT(error_of(riff(format)).what, HasSubstr("no data chunk: no chunk starts at byte 36"));
  EXPECT_THAT(error_of(riff(chunk("data", "abcd"))).what, HasSubstr("no fmt chunk"));
  EXPECT_THAT(error_of(riff(chunk("fmt ", "short"))).what, HasSubstr("fmt chunk has 5 bytes"));
  EXPECT_THAT(error_of(riff("fmt " + integer(0x66666666, 4) + format_body({}))).what,
              HasSubstr("no data chunk"));
}

TEST(Wav, EveryCutOfAFileIsAnErrorOrReported) {
  const auto values = ramp(100);
  const auto file = wav({}, int16_bytes(values));
  for (std::size_t size = 0; size < file.size(); ++size) {
    const auto decoded = decode(file.substr(0, size));
    if (size < 44) {
      EXPECT_FALSE(decoded) << size;
      continue;
    }
    ASSERT_TRUE(decoded) << size << decoded.error().message();
    EXPECT_EQ(decoded->samples.size(), (size - 44) / 2);
    EXPECT_TRUE(decoded->truncated) << size;
  }
}

}  // namespace
}  // namespace oasr
