// The odd, broken and cut files of the full test data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <set>

#include "audio/audio_source.h"
#include "audio/memory_audio.h"
#include "audio/wav_bytes.h"
#include "testing/paths.h"

namespace oasr {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Frames that ffmpeg and libsndfile decode at the file's own rate (where these differ: the one that
// decodes the whole file), or a part of the error.
struct Expected {
  const char* file;
  int sample_rate = 0;
  std::size_t frames = 0;
  const char* error = nullptr;
  const char* warning = nullptr;
  const char* raw = nullptr;  // encoding
};

constexpr Expected kFiles[] = {
    {"crispasr__jfk-vorbis.webm", 16000, 176'128},
    {"crispasr__jfk.aac", 16000, 177'152},
    {"crispasr__jfk.amr", 8000, 88'000},
    {"crispasr__jfk.au", 8000, 88'000},
    {"crispasr__jfk.m4a", 16000, 176'128},
    {"crispasr__jfk.mp3", 16000, 176'000},
    {"crispasr__jfk.opus", 48000, 528'000},
    {"crispasr__jfk.webm", 48000, 528'000},
    {"faster-whisp__hotwords.mp3", 44100, 176'400},
    {"flactest__faulty_01_-_wrong_max_blocksize.flac", 24000, 101'999, nullptr, "libsndfile can"},
    {"flactest__faulty_03_-_wrong_bit_depth.flac", 24000, 89'903, nullptr, "libsndfile can"},
    {"flactest__faulty_04_-_wrong_number_of_channels.flac", 24000, 97'391},
    {"flactest__faulty_05_-_wrong_total_number_of_samples.flac", 24000, 109'487, nullptr,
     "the header declares 1.660 s, 4.562 s are there"},
    {"flactest__faulty_06_-_missing_streaminfo_metadata_block.flac", 0, 0, "not STREAMINFO"},
    {"flactest__faulty_07_-_other_metadata_blocks_preceding_streaminfo_metadata_block.flac", 24000,
     106'031, nullptr, "libsndfile can"},
    {"flactest__faulty_08_-_blocksize_65536.flac", 0, 0, "no audio stream in it (container flac)"},
    {"flactest__faulty_10_-_invalid_vorbis_comment_metadata_block.flac", 24000, 119'279},
    {"flactest__faulty_11_-_incorrect_metadata_block_length.flac", 0, 0, "no flac frame in it"},
    {"flactest__uncommon_09_-_Rice_partition_order_15.flac", 24000, 105'083},
    {"funasr__asr_example.mp3", 16000, 88'747},
    {"funasr__sample.wav", 16000, 96'000},
    {"funasr__tmp.wav", 16000, 0},
    {"lhotse__ES2011a.Headset-0-40s-46s.wav", 16000, 96'000},
    {"lhotse__common_voice_en_651325.mp3", 48000, 114'048},
    {"lhotse__mono_c0.opus", 48000, 24'260},
    {"lhotse__mono_c0.wav", 8000, 4'000},
    {"lhotse__stereo.sph", 8000, 8'000},
    {"montreal-for__13697_11991_000000.opus", 48000, 712'800},
    {"montreal-for__common_voice_en_22058264.mp3", 48000, 196'992},
    {"montreal-for__common_voice_en_22058266.mp3", 48000, 112'896},
    {"montreal-for__common_voice_en_22058267.mp3", 48000, 88'704},
    {"montreal-for__common_voice_ja_24511055.mp3", 32000, 208'512},
    {"montreal-for__dummy.mp3", 16000, 17'280},
    {"montreal-for__dummy.wav", 16000, 16'000},
    {"montreal-for__mfa_breaths.flac", 16000, 215'488},
    {"montreal-for__mfa_creaky.flac", 16000, 106'288},
    {"montreal-for__mfa_internalsil.flac", 16000, 180'128},
    {"montreal-for__mfa_laughter.flac", 16000, 184'288},
    {"montreal-for__mfa_uhum.flac", 16000, 130'624},
    {"montreal-for__mfa_whisper.flac", 16000, 58'656},
    {"oasr__tone_8k.alaw", 0, 0, "no audio format is recognised"},
    {"oasr__tone_8k.alaw", 8000, 8'000, nullptr, nullptr, "alaw"},
    {"oasr__tone_8k.ulaw", 0, 0, "no audio format is recognised"},
    {"oasr__tone_8k.ulaw", 8000, 8'000, nullptr, nullptr, "mulaw"},
    {"pocketsphinx__awful.wav", 0, 0, "sample rate of 1092676 Hz"},
    {"pocketsphinx__bad.wav", 0, 0, "no data chunk: no chunk starts at byte 1717986938"},
    {"pocketsphinx__dhd.2934z.raw", 0, 0, "no audio format is recognised"},
    {"pocketsphinx__dhd.2934z.raw", 16000, 38'400, nullptr, nullptr, "s16le"},
    {"pocketsphinx__evil.wav", 0, 0, "no data chunk: no chunk starts at byte 960051558"},
    {"pocketsphinx__input_4_16k.wav", 16000, 92'160},
    {"pocketsphinx__leak-test.wav", 8000, 75'000},
    {"pocketsphinx__null.wav", 16000, 0},
    {"silero-vad__test.opus", 48000, 387'072},
    {"speech_recog__audio-mono-16-bit-44100Hz.aiff", 44100, 121'052},
    {"speech_recog__audio-mono-16-bit-44100Hz.flac", 44100, 121'052},
    {"speech_recog__audio-mono-16-bit-44100Hz.wav", 44100, 121'052},
    {"speech_recog__audio-mono-24-bit-44100Hz.flac", 44100, 121'052},
    {"speech_recog__audio-mono-32-bit-44100Hz.wav", 44100, 121'052},
    {"speech_recog__audio-mono-8-bit-44100Hz.wav", 44100, 121'052},
    {"speech_recog__audio-stereo-16-bit-44100Hz.flac", 44100, 121'052},
    {"speech_recog__audio-stereo-24-bit-44100Hz.flac", 44100, 121'052},
    {"speech_recog__audio-stereo-8-bit-44100Hz.wav", 44100, 121'052},
    {"speech_recog__chinese.flac", 48000, 45'910},
    {"speech_recog__english.wav", 44100, 121'052},
    {"speech_recog__french.aiff", 44100, 111'695},
    {"speechbrain__example2.flac", 16000, 33'088},
    {"speechbrain__example3.sph", 16000, 46'242},
    {"speechbrain__example4.raw", 0, 0, "no audio format is recognised"},
    {"speechbrain__example4.raw", 16000, 35'012, nullptr, nullptr, "s16le"},
    {"whisperkit__8_Channel_ID.m4a", 48000, 387'072},
    {"whisperkit__es_test_clip.wav", 16000, 122'633},
    {"whisperkit__ja_test_clip.wav", 16000, 44'368},
    {"whisperkit__jfk_441khz.m4a", 44100, 485'312},
};

fs::path folder() { return *testing::full_data() / "data" / "robustness" / "audio"; }

Result<std::unique_ptr<AudioSource>> open_expected(const Expected& expected) {
  AudioOptions options;
  if (expected.raw != nullptr) options.raw = RawFormat{expected.raw, expected.sample_rate, 1};
  return open_audio(folder() / expected.file, options);
}

TEST(OddFiles, AreAllInTheTable) {
  OASR_REQUIRE_FULL_DATA();
  std::set<std::string> names;
  for (const auto& expected : kFiles) names.insert(expected.file);
  for (const auto& entry : fs::directory_iterator(folder())) {
    EXPECT_TRUE(names.contains(entry.path().filename())) << entry.path();
  }
  EXPECT_EQ(names.size(), 69U);
}

TEST(OddFiles, GiveTheirSamplesOrSayWhy) {
  OASR_REQUIRE_FULL_DATA();
  for (const auto& expected : kFiles) {
    SCOPED_TRACE(expected.file);
    auto source = open_expected(expected);
    if (expected.error != nullptr) {
      ASSERT_FALSE(source);
      EXPECT_EQ(source.error().code, ErrorCode::bad_audio);
      EXPECT_THAT(source.error().what, HasSubstr(expected.error));
      continue;
    }
    ASSERT_TRUE(source) << source.error().message();
    EXPECT_EQ((*source)->info().sample_rate, expected.sample_rate);
    const auto samples = read_all(**source);
    ASSERT_TRUE(samples) << samples.error().message();
    EXPECT_EQ(samples->size(),
              static_cast<std::size_t>(std::floor(
                  static_cast<double>(expected.frames) * 16000 / expected.sample_rate + 0.5)));
    EXPECT_EQ((*source)->truncated(), std::nullopt);
    const auto& warnings = (*source)->warnings();
    EXPECT_EQ(warnings.size(), expected.warning != nullptr ? 1U : 0U);
    if (expected.warning != nullptr && !warnings.empty()) {
      EXPECT_THAT(warnings[0], HasSubstr(expected.warning));
    }
  }
}

std::string bytes_of(const std::string& name) {
  std::ifstream file(folder() / name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The same speech in eight encodings: the power of each second must be that of the mu-law file.
TEST(OddFiles, OneClipSoundsTheSameInEveryContainer) {
  OASR_REQUIRE_FULL_DATA();
  const auto envelope = [](const std::string& name, std::size_t start) {
    auto source = open_audio(folder() / name);
    EXPECT_TRUE(source);
    const auto samples = read_all(**source).value();
    std::vector<double> powers(11);  // of each second
    for (std::size_t i = 0; i < 176'000 && start + i < samples.size(); ++i) {
      const auto sample = static_cast<double>(samples[start + i]);
      powers[i / 16'000] += sample * sample / 16'000;
    }
    return powers;
  };
  const auto reference = envelope("crispasr__jfk.au", 0);
  for (const auto* kind : {"-vorbis.webm", ".aac", ".amr", ".m4a", ".mp3", ".opus", ".webm"}) {
    // ADTS can not say that its first frame of 1,024 samples is the encoder's delay.
    const auto powers =
        envelope(std::string("crispasr__jfk") + kind, kind == std::string(".aac") ? 1024 : 0);
    // Lossy codecs keep a second's power within 2 dB, above a floor of codec noise.
    for (std::size_t i = 0; i < powers.size(); ++i) {
      EXPECT_LT(std::abs(10 * std::log10((powers[i] + 1e-4) / (reference[i] + 1e-4))), 2)
          << kind << ", second " << i;
    }
  }
}

TEST(CutFiles, AreReadAsFarAsTheyGoAndReported) {
  OASR_REQUIRE_FULL_DATA();
  for (const auto* name :
       {"crispasr__jfk-vorbis.webm", "crispasr__jfk.aac", "crispasr__jfk.amr", "crispasr__jfk.au",
        "crispasr__jfk.m4a", "crispasr__jfk.mp3", "crispasr__jfk.opus", "crispasr__jfk.webm",
        "lhotse__common_voice_en_651325.mp3", "lhotse__stereo.sph", "montreal-for__dummy.wav",
        "montreal-for__mfa_whisper.flac", "speech_recog__audio-mono-16-bit-44100Hz.aiff"}) {
    SCOPED_TRACE(name);
    auto whole = open_audio(folder() / name);
    ASSERT_TRUE(whole);
    const auto all = read_all(**whole).value();
    const auto bytes = bytes_of(name);
    const auto half = bytes.substr(0, bytes.size() * 6 / 10 + 1);
    auto source = open_audio_bytes(testing::as_span(half));
    ASSERT_TRUE(source) << source.error().message();
    const auto samples = read_all(**source);
    ASSERT_TRUE(samples);
    // Bytes and time run together up to codec headers and variable rates.
    EXPECT_NEAR(static_cast<double>(samples->size()), 0.6 * static_cast<double>(all.size()),
                0.2 * static_cast<double>(all.size()));
    EXPECT_THAT((*source)->truncated().value_or("nothing"),
                ::testing::AnyOf(HasSubstr("the audio ends at"), HasSubstr("damaged at")));
    // What is there is what the whole file has, up to the last frame and the resampler's edge.
    const auto sure = samples->size() - std::min<std::size_t>(samples->size(), 4000);
    for (std::size_t i = 0; i < sure; ++i) ASSERT_EQ((*samples)[i], all[i]) << "sample " << i;
  }
}

TEST(CutFiles, WithoutTheirIndexAreErrors) {
  OASR_REQUIRE_FULL_DATA();
  const auto bytes = bytes_of("whisperkit__8_Channel_ID.m4a");
  const auto source = open_audio_bytes(testing::as_span(bytes.substr(0, bytes.size() / 2)));
  ASSERT_FALSE(source);
  EXPECT_THAT(source.error().what, HasSubstr("MP4 file without a usable index (moov)"));
}

TEST(DamagedFiles, SayWhereAndGoOn) {
  OASR_REQUIRE_FULL_DATA();
  for (const auto* name :
       {"crispasr__jfk.aac", "crispasr__jfk.m4a", "crispasr__jfk.mp3", "crispasr__jfk.opus",
        "montreal-for__mfa_whisper.flac", "speech_recog__audio-mono-16-bit-44100Hz.flac"}) {
    SCOPED_TRACE(name);
    auto bytes = bytes_of(name);
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() / 2), bytes.size() / 10,
                '\0');
    auto source = open_audio_bytes(testing::as_span(bytes));
    ASSERT_TRUE(source) << source.error().message();
    const auto samples = read_all(**source);
    ASSERT_TRUE(samples);
    const auto whole = read_all(**open_audio(folder() / name)).value();
    EXPECT_GT(samples->size(),
              whole.size() * 7 / 10);  // a tenth is gone, and pages or frames around it
    EXPECT_THAT((*source)->truncated().value_or("nothing"), HasSubstr("damaged at "));
  }
}

TEST(OddFiles, ChannelsOfAnEightChannelFileDiffer) {
  OASR_REQUIRE_FULL_DATA();
  const auto path = folder() / "whisperkit__8_Channel_ID.m4a";
  std::vector<std::vector<float>> channels;
  for (int channel = 0; channel < 8; ++channel) {
    auto source = open_audio(path, {.channel = channel});
    ASSERT_TRUE(source);
    channels.push_back(read_all(**source).value());
  }
  EXPECT_NE(channels[0], channels[7]);
  const auto mean = read_all(**open_audio(path)).value();
  for (std::size_t i = 0; i < mean.size(); i += 97) {
    double sum = 0;
    for (const auto& channel : channels) sum += static_cast<double>(channel[i]);
    EXPECT_NEAR(static_cast<double>(mean[i]), sum / 8,
                1e-6);  // soxr is linear, up to float rounding
  }
  EXPECT_EQ(open_audio(path, {.channel = 8}).error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace oasr
