#include "engine/window_source.h"

#include "engine/engine_fixture.h"
#include "features/log_mel.h"
#include "features/mel_testing.h"

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

// Everything that a window source gives of some windows.
std::vector<float> all_of(WindowSource& windows) {
  std::vector<float> all, mel(80 * kWhisperFrames);
  for (const std::int64_t seek : {0, 1234, 4234, 17000}) {
    const int frames = *windows.load(seek);
    windows.mel(frames, mel);
    all.insert(all.end(), mel.begin(), mel.end());
    windows.mel_with_silence(frames, mel);
    all.insert(all.end(), mel.begin(), mel.end());
  }
  return all;
}

TEST(WindowSource, GivesTheSameFeaturesWithADeviceThatComputesThem) {
  const auto samples = babble(200.005);
  for (const bool pipe : {false, true}) {
    TestAudio audio(samples, pipe), same(samples, pipe);
    CountingDevice device(whisper_recipe(80), 100);
    const auto here = *open_mel_windows(audio, 80, {}), there = *open_mel_windows(same, 80, {}, &device);
    EXPECT_EQ(all_of(*there), all_of(*here));
    // Twice for a file: its maximum first. A recording is given in pieces of about a window.
    EXPECT_GE(device.computed, pipe ? 19'000u : 38'000u);
    EXPECT_LE(device.calls, pipe ? 12 : 20);
  }
  TestAudio audio(samples);
  CountingDevice device(whisper_recipe(80), 100);
  device.broken = true;
  EXPECT_THROW(static_cast<void>(open_mel_windows(audio, 80, {}, &device)), std::runtime_error);
}

}  // namespace
}  // namespace oasr::engine
