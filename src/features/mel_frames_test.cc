#include "features/mel_frames.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "features/mel_testing.h"

namespace oasr {
namespace {

// The index of the first that differs, or -1. Any NaN equals any NaN.
std::ptrdiff_t first_difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool same = std::bit_cast<std::uint32_t>(a[i]) == std::bit_cast<std::uint32_t>(b[i]);
    if (!same && !(std::isnan(a[i]) && std::isnan(b[i]))) return static_cast<std::ptrdiff_t>(i);
  }
  return -1;
}

TEST(MelFrames, GiveTheBitsOfAFrameAloneInEveryLane) {
  for (const auto& [name, recipe] : mel_recipes()) {
    for (const std::size_t frames : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 40}) {
      for (const auto& [kind, samples] : mel_signals((frames - 1) * recipe.hop + recipe.window)) {
        const MelResult expected = expected_mel(recipe, samples.data(), frames);
        for (const MelLane* lane : mel_lanes()) {
          MelFrames mel(recipe, nullptr, lane);
          MelResult result(recipe, frames);
          mel.compute(samples.data(), frames, result.out());
          const std::string what =
              name + ", " + kind + ", " + std::to_string(frames) + " frames, " + mel_lane_name(*lane);
          ASSERT_EQ(first_difference(result.logs, expected.logs), -1) << what;
          ASSERT_EQ(first_difference(result.greatest, expected.greatest), -1) << what;
        }
      }
      if (name == "fbank of 4096" && frames > 4) break;
    }
  }
}

TEST(MelFrames, MayLieAnywhereAndGiveOnlyWhatIsWanted) {
  const MelRecipe recipe = whisper_recipe(80);
  const auto signals = mel_signals(4000);
  const auto& samples = signals.front().samples;
  std::vector<const float*> frames;
  for (const std::size_t at : {17, 3600, 0, 0, 100, 2000, 2001, 2002, 2003, 5, 6})
    frames.push_back(&samples[at]);
  MelFrames mel(recipe);
  MelResult both(recipe, frames.size()), apart(recipe, frames.size());
  mel.compute(frames, both.out());
  mel.compute(frames, {.logs = apart.logs.data(), .greatest = nullptr});
  mel.compute(frames, {.logs = nullptr, .greatest = apart.greatest.data()});
  EXPECT_EQ(apart.logs, both.logs);
  EXPECT_EQ(apart.greatest, both.greatest);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const MelResult alone = expected_mel(recipe, frames[i], 1);
    EXPECT_TRUE(std::equal(alone.logs.begin(), alone.logs.end(),
                           both.logs.begin() + static_cast<std::ptrdiff_t>(i * 80)));
    EXPECT_EQ(alone.greatest[0], both.greatest[i]);
  }
}

TEST(MelFrames, OfManyAreComputedOnTheDeviceAndOfFewHere) {
  const MelRecipe recipe = *fbank_recipe({});
  CountingDevice device(recipe, 10);
  const auto samples = mel_signals(400 + 20 * 160).front().samples;
  Fbank stream = *Fbank::make({}, &device);
  std::vector<float> frames;
  stream.push(std::span(samples).first(400 + 8 * 160), frames);
  EXPECT_EQ(device.calls, 0);
  stream.push(std::span(samples).subspan(400 + 8 * 160), frames);
  EXPECT_EQ(device.computed, 12u);
  EXPECT_EQ(frames, *fbank(samples, {}));
}

// Streams with a device give what they give without, in pushes of any size.
TEST(MelFrames, OfStreamsDoNotDependOnTheDevice) {
  const auto samples = mel_signals(16'000).front().samples;
  for (const bool snip : {true, false}) {
    const FbankOptions options{.snip_edges = snip};
    CountingDevice device(*fbank_recipe(options), 1);
    EXPECT_EQ(*fbank(samples, options, &device), *fbank(samples, options));
    EXPECT_EQ(device.computed, snip ? 98u : 100u);
  }
  for (const int mels : {80, 128}) {
    CountingDevice device(whisper_recipe(mels), 30);
    EXPECT_EQ(whisper_log_mel(samples, mels, &device), whisper_log_mel(samples, mels));
    EXPECT_EQ(device.calls, 1);
    for (const std::size_t push : {1000, 7000, 16000}) {
      LogMelStream here(mels), there(mels, &device);
      LogMelMaximum maximum_here(mels), maximum_there(mels, &device);
      std::vector<float> expected, frames;
      for (std::size_t at = 0; at < samples.size(); at += push) {
        const auto part = std::span(samples).subspan(at, std::min(push, samples.size() - at));
        here.push(part, expected);
        there.push(part, frames);
        maximum_here.push(part);
        maximum_there.push(part);
      }
      here.finish(expected);
      there.finish(frames);
      EXPECT_EQ(frames, expected) << push;
      EXPECT_EQ(there.max_value(), here.max_value()) << push;
      EXPECT_EQ(maximum_there.finish(), here.max_value()) << push;
      EXPECT_EQ(maximum_here.finish(), here.max_value()) << push;
    }
  }
}

}  // namespace
}  // namespace oasr
