// The parts of the engine that work on values.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/fake_model.h"
#include "engine/hallucination.h"
#include "engine/level_meter.h"
#include "engine/segments.h"
#include "engine/validate.h"
#include "engine/word_times.h"

namespace oasr::engine {
namespace {

const FakeModel& fake() {
  static const FakeModel model(say({}));
  return model;
}

WindowSegments split(std::vector<TokenId> tokens, std::int64_t seek = 1000, int frames = 2500) {
  DecodedWindow decoded;
  decoded.tokens = std::move(tokens);
  return split_segments(decoded, seek, frames, fake(), false);
}

TEST(SplitSegments, WithoutTimestampsTheWindowIsOneSegment) {
  const auto window = split({0, 1});
  ASSERT_EQ(window.segments.size(), 1u);
  EXPECT_EQ(window.segments[0].start, 10.0);
  EXPECT_EQ(window.segments[0].end, 35.0);
  EXPECT_EQ(window.seek, 3500);
  EXPECT_FALSE(window.single_timestamp_ending);
}

TEST(SplitSegments, ALoneTimestampEndsTheOnlySegment) {
  const auto window = split({at(0), 0, 1, at(7)});
  EXPECT_EQ(window.segments[0].end, 17.0);
  EXPECT_EQ(window.seek, 3500);
  EXPECT_TRUE(window.single_timestamp_ending);
}

TEST(SplitSegments, AnUnfinishedSegmentIsLeftToTheNextWindow) {
  const auto window = split({at(0), 0, at(4), at(4.4), 1, at(9), at(9), 2});
  ASSERT_EQ(window.segments.size(), 2u);
  EXPECT_EQ(window.segments[1].start, 14.4);
  EXPECT_EQ(window.segments[1].end, 19.0);
  EXPECT_EQ(window.seek, 1900);
}

TEST(SplitSegments, APairAtTheEndSeeksToIt) {
  const auto window = split({at(0), 0, at(4), at(4.4)});
  ASSERT_EQ(window.segments.size(), 1u);
  EXPECT_EQ(window.seek, 1400);
}

TEST(SplitSegments, OfNoTokensIsOneEmptySegment) {
  const auto window = split({});
  ASSERT_EQ(window.segments.size(), 1u);
  EXPECT_EQ(window.segments[0].text, "");
  EXPECT_EQ(window.seek, 3500);
}

WordTime timed(std::string text, double start, double end) {
  return {std::move(text), {1}, start, end, 0.9};
}

TEST(MergePunctuation, JoinsMarksToTheirWords) {
  std::vector<WordTime> words{timed(" a", 0, 1),  timed(" (", 1, 1.2),  timed("b", 1.2, 2),
                              timed(")", 2, 2.1), timed(".", 2.1, 2.2), timed(" c", 3, 4)};
  merge_punctuation(words, "\"'“¿([{-", "\"'.。,，!！?？:：”)]}、");
  std::string texts;
  for (const auto& word : words) texts += "|" + word.text;
  EXPECT_EQ(texts, "| a|| (b).||| c");
  EXPECT_EQ(words[2].tokens.size(), 4u);
}

Segment segment_of(double start, double end, std::vector<TokenId> tokens) {
  Segment segment;
  segment.start = start;
  segment.end = end;
  segment.tokens = std::move(tokens);
  return segment;
}

TEST(SetWords, SharesWordsOutByTokens) {
  std::vector<Segment> segments{segment_of(10, 11, {at(0), 1, 1, at(1)}),
                                segment_of(11, 12, {at(1), 1, at(2)})};
  set_words(segments, {timed(" a", 0, 0.4), timed(" b", 0.4, 0.9), timed(" c", 1.0, 1.5)}, kEot, 10,
            10, "", "");
  ASSERT_EQ(segments[0].words.size(), 2u);
  ASSERT_EQ(segments[1].words.size(), 1u);
  EXPECT_EQ(segments[0].end, 10.9);
  EXPECT_EQ(segments[1].start, 11.0);
  EXPECT_EQ(segments[1].end, 11.5);
}

TEST(SetWords, ShortensAWordThatAPauseMadeLong) {
  std::vector<Segment> segments{segment_of(10, 15, {1, 1, 1})};
  set_words(segments, {timed(" a", 0, 4.0), timed(" b", 4.0, 4.4), timed(" c", 4.4, 4.8)}, kEot, 10,
            5, "", "");
  // The median is 0.4: the first word after the pause gets twice that.
  EXPECT_NEAR(segments[0].words[0].start, 13.2, 1e-9);
  EXPECT_NEAR(segments[0].start, 13.2, 1e-9);
}

TEST(SetWords, ZeroLengthWordsAndEmptySegmentsAreFine) {
  std::vector<Segment> segments{segment_of(10, 10, {at(0)}), segment_of(10, 10, {1})};
  set_words(segments, {timed(" a", 0, 0)}, kEot, 10, 0, "", "");
  EXPECT_TRUE(segments[0].words.empty());
  ASSERT_EQ(segments[1].words.size(), 1u);
  EXPECT_EQ(segments[1].end, 10.0);
  std::vector<Segment> none;
  set_words(none, {}, kEot, 0, 0, "", "");
}

Segment spoken(double start, double end, double probability) {
  Segment segment;
  segment.start = start;
  segment.end = end;
  segment.words.push_back({" a", start, end, probability});
  return segment;
}

TEST(SkipHallucinations, KeepsOrdinarySegments) {
  WindowSegments window;
  window.segments = {spoken(1, 1.5, 0.9), spoken(2, 2.5, 0.9)};
  window.seek = 3000;
  EXPECT_TRUE(skip_hallucinations(
      window, {.seek = 0, .frames = 3000, .total_frames = 9000, .last_speech = 0}, 2.0));
  EXPECT_EQ(window.segments.size(), 2u);
  EXPECT_EQ(window.seek, 250);  // more than the threshold is left: goes on at the last word
}

TEST(SkipHallucinations, DecodesAgainBehindLeadingSilence) {
  WindowSegments window;
  window.segments = {spoken(8, 8.01, 0.01)};
  EXPECT_FALSE(skip_hallucinations(
      window, {.seek = 0, .frames = 3000, .total_frames = 9000, .last_speech = 0}, 2.0));
  EXPECT_EQ(window.seek, 800);
}

TEST(SkipHallucinations, DropsOddSegmentsInSilence) {
  WindowSegments window;
  window.segments = {spoken(1, 1.5, 0.9), spoken(20, 24, 0.01)};
  EXPECT_TRUE(skip_hallucinations(
      window, {.seek = 0, .frames = 3000, .total_frames = 9000, .last_speech = 0}, 2.0));
  EXPECT_EQ(window.segments.size(), 1u);
  EXPECT_EQ(window.seek, 2000);
}

TEST(SkipHallucinations, AnImprobableWordIsOdd) {
  for (const double probability : {0.14, 0.16}) {
    WindowSegments window;
    window.segments = {spoken(1, 1.5, 0.9), spoken(20, 20.5, probability)};
    EXPECT_TRUE(skip_hallucinations(
        window, {.seek = 0, .frames = 3000, .total_frames = 9000, .last_speech = 0}, 2.0));
    EXPECT_EQ(window.segments.size(), probability < 0.15 ? 1u : 2u);
  }
}

TEST(SkipHallucinations, TheRecordingsStartCountsAsSilence) {
  // An odd segment right behind another one, before the threshold's time has passed.
  WindowSegments window;
  window.segments = {spoken(6.5, 7, 0.9), spoken(8, 8.5, 0.01)};
  EXPECT_TRUE(skip_hallucinations(
      window, {.seek = 0, .frames = 3000, .total_frames = 9000, .last_speech = 0}, 10.0));
  EXPECT_EQ(window.segments.size(), 1u);
  EXPECT_EQ(window.seek, 800);
}

TEST(LevelMeter, DoesNotDependOnThePushes) {
  std::vector<float> samples(5000);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = std::sin(static_cast<float>(i));
  std::vector<float> whole, pieces;
  LevelMeter one, many;
  one.push(samples, whole);
  one.finish(31, whole);
  for (std::size_t i = 0; i < samples.size(); i += 77) {
    many.push(std::span(samples).subspan(i, std::min<std::size_t>(77, samples.size() - i)), pieces);
  }
  many.finish(31, pieces);
  ASSERT_EQ(whole.size(), 31u);
  EXPECT_EQ(whole, pieces);
  double squares = 0;
  for (std::size_t i = 160 * 5 - 160; i < 160 * 5 + 240; ++i)
    squares += double{samples[i]} * samples[i];
  EXPECT_NEAR(whole[5], squares / 400, 1e-6);
}

TEST(IsQuiet, ByTheLoudestLevel) {
  EXPECT_TRUE(is_quiet({}, -60));
  EXPECT_TRUE(is_quiet(std::vector<float>(10, 0.9e-6f), -60));
  EXPECT_FALSE(is_quiet(std::vector<float>(10, 1.1e-6f), -60));
}

TEST(IsSteady, WhenNoLevelStandsOut) {
  EXPECT_FALSE(is_steady(std::vector<float>(49, 0.1f)));  // too short to be called steady
  EXPECT_TRUE(is_steady(std::vector<float>(50, 0.1f)));
  std::vector<float> click(100, 0.1f);
  click[30] = 0.15f;
  EXPECT_FALSE(is_steady(click));
}

struct Refusal {
  const char* name;
  void (*change)(TranscribeOptions&);
  const char* option;  // named by the error
};

class Refusals : public ::testing::TestWithParam<Refusal> {};

TEST_P(Refusals, NameTheOption) {
  TranscribeOptions options;
  GetParam().change(options);
  const auto status = validate_options(options, fake());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(status.error().where, GetParam().option) << status.error().message();
}

INSTANTIATE_TEST_SUITE_P(
    Options, Refusals,
    ::testing::Values(
        Refusal{"Language", [](auto& o) { o.language = "klingon"; }, "language"},
        Refusal{"MissingLanguage", [](auto& o) { o.language = "fr"; }, "language"},
        Refusal{"Task", [](auto& o) { o.task = "sing"; }, "task"},
        Refusal{"Beam", [](auto& o) { o.beam_size = 0; }, "beam_size"},
        Refusal{"BeamWithoutZero", [](auto& o) { o.beam_size = 5, o.temperatures = {0.2}; },
                "beam_size"},
        Refusal{"BestOf", [](auto& o) { o.best_of = 65; }, "best_of"},
        Refusal{"NoTemperature", [](auto& o) { o.temperatures = {}; }, "temperatures"},
        Refusal{"NanTemperature", [](auto& o) { o.temperatures = {std::nan("")}; }, "temperatures"},
        Refusal{"Patience", [](auto& o) { o.patience = 2; }, "patience"},
        Refusal{"NoPatience", [](auto& o) { o.beam_size = 2, o.patience = 0.1; }, "patience"},
        Refusal{"Alpha", [](auto& o) { o.length_penalty = 1.5; }, "length_penalty"},
        Refusal{"NBest", [](auto& o) { o.n_best = 2; }, "n_best"},
        Refusal{"Silence", [](auto& o) { o.silence_dbfs = 3; }, "silence_dbfs"},
        Refusal{"HallucinationWithoutWords", [](auto& o) { o.hallucination_silence_threshold = 2; },
                "hallucination_silence_threshold"},
        Refusal{"SuppressForeign", [](auto& o) { o.suppress_tokens = {5000}; }, "suppress_tokens"},
        Refusal{"TooManyTokens", [](auto& o) { o.max_new_tokens = 500; }, "max_new_tokens"},
        Refusal{"InitialTimestamp", [](auto& o) { o.max_initial_timestamp = -1; },
                "max_initial_timestamp"},
        Refusal{"CarryNothing", [](auto& o) { o.carry_initial_prompt = true; },
                "carry_initial_prompt"},
        Refusal{"LongPrefix", [](auto& o) { o.prefix = std::string(300, 'a'); }, "prefix"},
        Refusal{"FallingClips",
                [](auto& o) {
                  o.clip_timestamps = {5, 3};
                },
                "clip_timestamps"},
        Refusal{"SingleClips",
                [](auto& o) {
                  o.single_window = true, o.clip_timestamps = {1, 2};
                },
                "single_window"},
        Refusal{"SingleVad", [](auto& o) { o.single_window = o.vad.enabled = true; },
                "single_window"},
        Refusal{"VadClips",
                [](auto& o) {
                  o.vad.enabled = true, o.clip_timestamps = {1, 2};
                },
                "vad"},
        Refusal{"VadThreshold", [](auto& o) { o.vad.enabled = true, o.vad.threshold = 1; },
                "vad.threshold"}),
    [](const auto& param) { return std::string(param.param.name); });

TEST(ValidateOptions, TakesTheDefaultsAndEnglishOnlyModelsRefuseTheRest) {
  EXPECT_TRUE(validate_options({}, fake()));
  const FakeModel english(say({}), false);
  EXPECT_TRUE(validate_options({}, english));
  TranscribeOptions options;
  options.language = "English";
  EXPECT_TRUE(validate_options(options, english));
  options.language = "de";
  EXPECT_FALSE(validate_options(options, english));
  options.language = "auto";
  options.task = "translate";
  EXPECT_FALSE(validate_options(options, english));
}

}  // namespace
}  // namespace oasr::engine
