#include "engine/window_source.h"

#include "engine/engine_fixture.h"
#include "features/log_mel.h"

namespace oasr::engine {
namespace {

void expect_audio(WindowSource& windows, const std::vector<float>& samples, std::int64_t seek) {
  const auto frames = windows.load(seek);
  ASSERT_TRUE(frames);
  const auto left = static_cast<std::int64_t>(samples.size()) / kWhisperHop - seek;
  ASSERT_EQ(*frames, std::min<std::int64_t>(left, kWhisperFrames));
  const auto audio = windows.audio(*frames);
  ASSERT_EQ(audio.size(), static_cast<std::size_t>(*frames * kWhisperHop));
  EXPECT_TRUE(std::equal(audio.begin(), audio.end(), samples.begin() + seek * kWhisperHop)) << seek;
}

TEST(WindowSource, GivesTheSamplesOfEveryWindow) {
  auto samples = babble(200.005);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] += 1e-6f * static_cast<float>(i);
  for (const bool pipe : {false, true}) {
    TestAudio audio(samples, pipe);
    const auto windows = *open_mel_windows(audio, 80, {});
    for (const std::int64_t seek : {0, 0, 1234, 4234, 17000, 17003, 19999}) {
      expect_audio(*windows, samples, seek);
    }
  }
  samples.resize(123456);
  TestAudio audio(samples);
  expect_audio(**open_clip_window(audio, 80), samples, 0);
}

}  // namespace
}  // namespace oasr::engine
