#include "oasr/c_api.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "api/guard.h"
#include "audio/audio_source.h"
#include "oasr/recognizer.h"
#include "oasr/streaming.h"
#include "testing/paths.h"

namespace {

using Options = std::unique_ptr<oasr_options, decltype(&oasr_options_free)>;

Options make_options() { return {oasr_options_new(), oasr_options_free}; }

TEST(CApiOptions, TakeNamesWithDashesAndUnderscores) {
  const auto options = make_options();
  for (const auto& [name, value] : std::vector<std::pair<const char*, const char*>>{
           {"beam-size", "5"},
           {"beam_size", "5"},
           {"temperature", "0,0.2,0.4"},
           {"logprob-threshold", "none"},
           {"word-timestamps", "true"},
           {"seed", "18446744073709551615"},
           {"language", "de"},
           {"vad", "true"}}) {
    EXPECT_EQ(oasr_options_set(options.get(), name, value), OASR_OK) << name;
    EXPECT_STREQ(oasr_last_error(), "");
  }
}

TEST(CApiOptions, RefuseUnknownNamesAndWrongValues) {
  const auto options = make_options();
  for (const auto& [name, value] : std::vector<std::pair<const char*, const char*>>{
           {"beam-sise", "5"},
           {"beam-size", "five"},
           {"beam-size", "5x"},
           {"beam-size", ""},
           {"vad", "maybe"},
           {"temperature", "0,,1"},
           {"patience", "nan"},
           {"patience", "inf"}}) {
    EXPECT_EQ(oasr_options_set(options.get(), name, value), OASR_INVALID_ARGUMENT) << name;
    EXPECT_NE(std::string(oasr_last_error()).find(name), std::string::npos);
  }
}

TEST(CApi, NullIsAnErrorNotACrash) {
  const auto options = make_options();
  oasr_transcript* transcript = nullptr;
  oasr_recognizer* recognizer = nullptr;
  EXPECT_EQ(oasr_options_set(nullptr, "model", "x"), OASR_INVALID_ARGUMENT);
  EXPECT_EQ(oasr_options_set(options.get(), nullptr, "x"), OASR_INVALID_ARGUMENT);
  EXPECT_EQ(oasr_recognizer_load(nullptr, &recognizer), OASR_INVALID_ARGUMENT);
  EXPECT_EQ(oasr_recognizer_load(options.get(), nullptr), OASR_INVALID_ARGUMENT);
  EXPECT_EQ(oasr_transcribe_file(nullptr, "a.wav", options.get(), nullptr, nullptr, &transcript),
            OASR_INVALID_ARGUMENT);
  EXPECT_EQ(oasr_transcript_text(nullptr), nullptr);
  EXPECT_EQ(oasr_transcript_segment_count(nullptr), 0u);
  EXPECT_EQ(oasr_segment_text(nullptr, 0), nullptr);
  EXPECT_EQ(oasr_transcript_format(nullptr, "srt"), nullptr);
  oasr_transcript_free(nullptr);
  oasr_recognizer_free(nullptr);
  oasr_options_free(nullptr);
}

TEST(CApi, AMissingModelIsNotFoundWithAMessage) {
  const auto options = make_options();
  ASSERT_EQ(oasr_options_set(options.get(), "model", "/no/such/model"), OASR_OK);
  oasr_recognizer* recognizer = nullptr;
  EXPECT_EQ(oasr_recognizer_load(options.get(), &recognizer), OASR_NOT_FOUND);
  EXPECT_EQ(recognizer, nullptr);
  EXPECT_NE(std::string(oasr_last_error()).find("/no/such/model"), std::string::npos);
}

TEST(CApi, EveryStatusHasItsOwnName) {
  EXPECT_STREQ(oasr_status_name(OASR_OK), "ok");
  EXPECT_STREQ(oasr_status_name(OASR_BAD_AUDIO), "bad_audio");
  EXPECT_STREQ(oasr_status_name(OASR_INTERNAL), "internal");
  EXPECT_STREQ(oasr_status_name(static_cast<oasr_status>(77)), "unknown");
}

TEST(Guard, TurnsABugIntoAnInternalError) {
  const auto status = oasr::guarded([]() -> oasr::Status {
    CHECK(false, "broken");
    return {};
  });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, oasr::ErrorCode::internal);
  EXPECT_NE(status.error().what.find("broken"), std::string::npos);
}

TEST(RecognizerLoad, RefusesWrongConfigurationsByName) {
  oasr::EngineConfig config;
  config.model = "/no/such/model";
  config.dtype = "int3";
  EXPECT_EQ(oasr::Recognizer::load(config).error().where, "dtype");
  config.dtype = "auto";
  config.batch_size = 0;
  EXPECT_EQ(oasr::Recognizer::load(config).error().where, "batch_size");
}

TEST(RecognizerLoad, RefusesTheArithmeticOfGpusOnTheProcessor) {
  oasr::EngineConfig config;
  config.model = oasr::testing::test_data("wenet/old_config").string();
  config.device = "cpu";
  for (const char* arithmetic : {"float16", "bfloat16"}) {
    config.arithmetic = arithmetic;
    for (const auto& error : {oasr::Recognizer::load(config).error(), oasr::check_options(config, {}, {}).error(),
                              oasr::StreamingRecognizer::load(config, {}).error()}) {
      EXPECT_EQ(error.code, oasr::ErrorCode::unsupported) << arithmetic;
      EXPECT_EQ(error.where, "arithmetic");
      EXPECT_NE(error.what.find(arithmetic), std::string::npos) << error.what;
      EXPECT_NE(error.remedy.find("--device cuda"), std::string::npos) << error.remedy;
    }
  }
  config.arithmetic = "float8";
  EXPECT_EQ(oasr::Recognizer::load(config).error().code, oasr::ErrorCode::invalid_argument);
  config.arithmetic = "float32";
  EXPECT_TRUE(oasr::Recognizer::load(config));
}

// With tiny.en and the bundled recording.
class CApiModel : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto weights = oasr::testing::real_weights("tiny.en", "ct2");
    if (!weights) GTEST_SKIP() << "no real weights (scripts/get_test_weights.sh gets them)";
    ASSERT_EQ(oasr_options_set(options_.get(), "model", weights->c_str()), OASR_OK);
    ASSERT_EQ(oasr_recognizer_load(options_.get(), &recognizer_), OASR_OK) << oasr_last_error();
    speech_ = (oasr::testing::project_dir() / "assets" / "samples" / "jfk.flac").string();
  }
  ~CApiModel() override { oasr_recognizer_free(recognizer_); }

  Options options_ = make_options();
  oasr_recognizer* recognizer_ = nullptr;
  std::string speech_;
};

TEST_F(CApiModel, FileAndSamplesGiveTheSameText) {
  oasr_transcript* from_file = nullptr;
  ASSERT_EQ(oasr_transcribe_file(recognizer_, speech_.c_str(), options_.get(), nullptr, nullptr,
                                 &from_file),
            OASR_OK)
      << oasr_last_error();
  const std::string text = oasr_transcript_text(from_file);
  EXPECT_NE(text.find("country"), std::string::npos);
  EXPECT_STREQ(oasr_transcript_language(from_file), "en");
  EXPECT_NEAR(oasr_transcript_duration(from_file), 11.0, 0.1);
  ASSERT_GT(oasr_transcript_segment_count(from_file), 0u);
  EXPECT_NE(oasr_segment_text(from_file, 0), nullptr);
  EXPECT_EQ(oasr_segment_text(from_file, 999), nullptr);
  EXPECT_NE(std::string(oasr_transcript_format(from_file, "srt")).find(" --> "), std::string::npos);
  EXPECT_EQ(oasr_transcript_format(from_file, "docx"), nullptr);

  const auto source = oasr::open_audio(speech_);
  ASSERT_TRUE(source);
  const auto samples = oasr::read_all(**source);
  ASSERT_TRUE(samples);
  oasr_transcript* from_samples = nullptr;
  ASSERT_EQ(oasr_transcribe_samples(recognizer_, samples->data(), samples->size(), 16000,
                                    options_.get(), nullptr, nullptr, &from_samples),
            OASR_OK)
      << oasr_last_error();
  EXPECT_EQ(text, oasr_transcript_text(from_samples));
  oasr_transcript_free(from_samples);
  oasr_transcript_free(from_file);
}

TEST_F(CApiModel, ANonZeroProgressResultStops) {
  oasr_transcript* transcript = nullptr;
  const auto stop = [](double, double, void* calls) {
    ++*static_cast<int*>(calls);
    return 1;
  };
  int calls = 0;
  const auto source = oasr::open_audio(speech_);
  ASSERT_TRUE(source);
  const auto once = oasr::read_all(**source);
  ASSERT_TRUE(once);
  std::vector<float> samples;  // several windows
  for (int i = 0; i < 8; ++i) samples.insert(samples.end(), once->begin(), once->end());
  EXPECT_EQ(oasr_transcribe_samples(recognizer_, samples.data(), samples.size(), 16000,
                                    options_.get(), stop, &calls, &transcript),
            OASR_CANCELLED);
  EXPECT_EQ(transcript, nullptr);
  EXPECT_EQ(calls, 1);
}

TEST_F(CApiModel, ReportIsJson) {
  const std::string report = oasr_recognizer_report(recognizer_);
  EXPECT_NE(report.find("\"architecture\": \"whisper\""), std::string::npos) << report;
}

}  // namespace
