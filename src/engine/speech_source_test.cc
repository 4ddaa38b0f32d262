#include "engine/speech_source.h"

#include <gtest/gtest.h>

#include <cmath>

#include "audio/audio_source.h"
#include "testing/paths.h"

namespace oasr::engine {
namespace {

TEST(TimeMap, FindsTheWayBackFromJoinedPieces) {
  TimeMap times;
  times.append({16000, 32000});    // 0 … 1 s of the joined pieces
  times.append({48000, 64000});    // 1 … 2 s
  times.append({64000, 80000});    // goes on: 2 … 3 s
  times.append({160000, 176000});  // 3 … 4 s
  EXPECT_EQ(times.pieces(),
            (std::vector<SampleRange>{{16000, 32000}, {48000, 80000}, {160000, 176000}}));
  const auto range = [&](double start, double end) { return times.range({start, end}); };
  EXPECT_EQ(range(0, 0.5), (TimeRange{1.0, 1.5}));
  EXPECT_EQ(range(0.5, 1), (TimeRange{1.5, 2.0}));  // an end at the joint: the earlier piece
  EXPECT_EQ(range(1, 1.5), (TimeRange{3.0, 3.5}));  // a start at the joint: the later one
  EXPECT_EQ(range(0.5, 1.5), (TimeRange{1.5, 3.5}));
  EXPECT_EQ(range(1.5, 2.5), (TimeRange{3.5, 4.5}));  // no gap there
  EXPECT_EQ(range(3, 4), (TimeRange{10.0, 11.0}));
  EXPECT_EQ(range(3.5, 4.5), (TimeRange{10.5, 11.5}));  // behind the end: as the last piece
  EXPECT_EQ(range(1, 1), (TimeRange{3.0, 3.0}));        // nothing has no negative length
}

TEST(TimeMap, CutsRangesThatReachIntoSilentMarginsOnly) {
  TimeMap times(1600);  // 0.1 s
  times.append({16000, 32000});
  times.append({48000, 64000});
  const auto range = [&](double start, double end) { return times.range({start, end}); };
  EXPECT_EQ(range(0.5, 1.05), (TimeRange{1.5, 2.0}));
  EXPECT_EQ(range(0.95, 1.5), (TimeRange{3.0, 3.5}));
  EXPECT_EQ(range(0.5, 1.2), (TimeRange{1.5, 3.2}));
  EXPECT_EQ(range(1.01, 1.05), (TimeRange{3.01, 3.05}));  // within one piece nothing is cut
}

TEST(TimeMap, OfNothingChangesNothing) {
  EXPECT_EQ(TimeMap().range({3.5, 4}), (TimeRange{3.5, 4}));
}

// Speech between silences: the padding of the test data's recording is digital silence.
std::vector<float> speech_between_silences() {
  const auto audio = open_audio(*testing::full_data() / "data/read_english_misc/audio/jfk.wav");
  std::vector<float> samples(16000 * 8, 0.0f);
  const auto speech = *read_all(**audio);
  samples.insert(samples.end(), speech.begin(), speech.end());
  samples.insert(samples.end(), 16000 * 8, 0.0f);
  return samples;
}

TEST(SpeechSource, HandsOutTheSamplesOfItsPiecesTwiceTheSame) {
  OASR_REQUIRE_FULL_DATA();
  const auto samples = speech_between_silences();
  const auto audio = *audio_from_samples(samples, 16000);
  VadOptions options;
  options.enabled = true;
  SpeechSource source(*audio, options);
  const auto first = *read_all(source);
  const auto pieces = source.times().pieces();
  ASSERT_FALSE(pieces.empty());
  std::vector<float> expected;
  for (const SampleRange& piece : pieces) {
    expected.insert(expected.end(), samples.begin() + piece.begin, samples.begin() + piece.end);
  }
  EXPECT_EQ(first, expected);
  EXPECT_LT(first.size(), samples.size() / 2);
  EXPECT_EQ(source.recording_samples(), static_cast<std::int64_t>(samples.size()));
  ASSERT_TRUE(source.rewind());
  EXPECT_EQ(*read_all(source), first);
  EXPECT_EQ(source.times().pieces(), pieces);
}

TEST(SpeechSource, ARewindBeforeTheEndDetectsAnew) {
  OASR_REQUIRE_FULL_DATA();
  const auto audio = *audio_from_samples(speech_between_silences(), 16000);
  VadOptions options;
  options.enabled = true;
  SpeechSource source(*audio, options);
  std::vector<float> some(20000);
  ASSERT_TRUE(source.read(some));
  ASSERT_TRUE(source.rewind());
  const auto after = *read_all(source);
  SpeechSource fresh(*audio, options);
  ASSERT_TRUE(fresh.rewind());
  EXPECT_EQ(after, *read_all(fresh));
}

TEST(SpeechSource, OfSilenceIsEmpty) {
  const auto audio = *audio_from_samples(std::vector<float>(50000, 0.0f), 16000);
  VadOptions options;
  options.enabled = true;
  SpeechSource source(*audio, options);
  EXPECT_TRUE(read_all(source)->empty());
  EXPECT_EQ(source.recording_samples(), 50000);
}

}  // namespace
}  // namespace oasr::engine
