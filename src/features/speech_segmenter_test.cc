#include <gtest/gtest.h>

#include <random>

#include "base/fs.h"
#include "base/json.h"
#include "features/silero_vad.h"
#include "testing/paths.h"

namespace oasr {
namespace {

std::vector<SampleRange> segments(const std::vector<float>& probabilities, std::int64_t samples,
                                  const VadOptions& options) {
  SpeechSegmenter segmenter(options);
  std::vector<SampleRange> speech;
  for (const float p : probabilities) segmenter.push(p, speech);
  segmenter.finish(samples, speech);
  return speech;
}

TEST(SpeechSegmenter, MakesTheRangesOfTheReference) {
  const Json golden = *parse_json(*read_text_file(testing::test_data("vad_golden.json")), "golden");
  for (const Json& one : golden.at("cases")) {
    const Json& given = one.at("options");
    const VadOptions options{.enabled = true,
                             .threshold = given.at("threshold").get<double>(),
                             .min_speech_ms = given.at("min_speech_duration_ms").get<double>(),
                             .max_speech_s = given.at("max_speech_duration_s").get<double>(),
                             .min_silence_ms = given.at("min_silence_duration_ms").get<double>(),
                             .speech_pad_ms = given.at("speech_pad_ms").get<double>()};
    std::vector<SampleRange> expected;
    for (const Json& range : one.at("speech")) {
      expected.push_back({range.at(0).get<std::int64_t>(), range.at(1).get<std::int64_t>()});
    }
    const auto speech = segments(one.at("probabilities").get<std::vector<float>>(),
                                 one.at("samples").get<std::int64_t>(), options);
    EXPECT_EQ(speech, expected) << given << " " << one.at("samples");
  }
}

TEST(SpeechSegmenter, NeverGoesBackBehindWhatItSettled) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    const VadOptions options{.enabled = true,
                             .min_speech_ms = static_cast<double>(random() % 3) * 200,
                             .max_speech_s = static_cast<double>(random() % 2) * 3,
                             .min_silence_ms = static_cast<double>(random() % 3) * 300,
                             .speech_pad_ms = static_cast<double>(random() % 3) * 200};
    SpeechSegmenter segmenter(options);
    std::vector<SampleRange> speech;
    std::int64_t settled = 0, end = 0;
    const std::int64_t steps = 300;
    float p = 0;
    for (std::int64_t i = 0; i <= steps; ++i) {
      const std::size_t before = speech.size();
      if (i < steps) {
        if (random() % 8 == 0) p = static_cast<float>(random() % 100) / 100;
        segmenter.push(p, speech);
      } else {
        segmenter.finish(steps * kVadStep, speech);
      }
      for (std::size_t k = before; k < speech.size(); ++k) {
        EXPECT_GE(speech[k].begin, settled);
        EXPECT_GE(speech[k].begin, end);
        EXPECT_GT(speech[k].end, speech[k].begin);
        EXPECT_LE(speech[k].end, steps * kVadStep);
        end = speech[k].end;
      }
      EXPECT_GE(segmenter.settled(), settled);
      settled = segmenter.settled();
    }
  }
}

TEST(SpeechSegmenter, HandsOutARangeOnceTheNextCanNotTouchIt) {
  const VadOptions options{
      .enabled = true, .min_speech_ms = 0, .min_silence_ms = 320, .speech_pad_ms = 64};
  SpeechSegmenter segmenter(options);
  std::vector<SampleRange> speech;
  for (int i = 0; i < 10; ++i) segmenter.push(0.9f, speech);
  for (int i = 0; i < 11; ++i) segmenter.push(0.0f, speech);
  EXPECT_EQ(speech, (std::vector<SampleRange>{{0, 10 * 512 + 1024}}));
  EXPECT_EQ(segmenter.settled(), 21 * 512 - 1024);  // only the widening of the next is open
}

TEST(SpeechSegmenter, CutsSpeechThatIsTooLong) {
  const VadOptions options{
      .enabled = true, .min_speech_ms = 0, .max_speech_s = 3, .speech_pad_ms = 0};
  const std::vector<float> endless(1000, 0.9f);
  const auto speech = segments(endless, 1000 * 512, options);
  ASSERT_GT(speech.size(), 9U);
  for (const SampleRange& range : speech) EXPECT_LE(range.end - range.begin, 3 * 16000);
}

}  // namespace
}  // namespace oasr
