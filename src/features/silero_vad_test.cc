#include "features/silero_vad.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>
#include <thread>

#include "base/fs.h"
#include "base/json.h"
#include "testing/arrays.h"
#include "testing/paths.h"

namespace oasr {
namespace {

// Pulses of a gliding pitch through three resonators, in syllables, over a little noise. The same
// arithmetic made the golden probabilities.
std::vector<float> synthetic_voice(std::size_t samples) {
  struct Resonator {
    double a, b, last = 0, before = 0;
  };
  std::array<Resonator, 3> resonators = {Resonator{1.7, -0.95}, Resonator{1.2, -0.92},
                                         Resonator{0.2, -0.9}};
  std::vector<float> out(samples);
  std::uint32_t state = 12345;
  double phase = 0;
  for (std::size_t i = 0; i < samples; ++i) {
    state = state * 1664525 + 1013904223;
    const double noise = static_cast<double>(state >> 8) / (1 << 24) - 0.5;
    phase += 0.0075 + static_cast<double>(i % 6000) / 6000.0 * 0.0025;
    double pulse = 0, voice = 0;
    if (phase >= 1.0) {
      phase -= 1.0;
      pulse = 1.0;
    }
    for (Resonator& r : resonators) {
      const double y = pulse + r.a * r.last + r.b * r.before;
      r.before = r.last;
      r.last = y;
      voice += y;
    }
    const double on = i / 8000 % 3 == 1 && i / 2500 % 4 != 3 ? 1.0 : 0.0;
    out[i] = static_cast<float>(voice * 0.05 * on + noise * 0.004);
  }
  return out;
}

std::vector<float> probabilities(SileroVad& vad, std::span<const float> samples) {
  std::vector<float> out;
  for (std::size_t at = 0; at + kVadStep <= samples.size(); at += kVadStep) {
    out.push_back(vad.step(samples.subspan(at).first<kVadStep>()));
  }
  return out;
}

TEST(SileroVad, GivesTheProbabilitiesOfTheReferenceInDouble) {
  const Json golden = *parse_json(*read_text_file(testing::test_data("vad_golden.json")), "golden");
  const auto expected = golden.at("signal_probabilities").get<std::vector<double>>();
  SileroVad vad;
  const auto got = probabilities(vad, synthetic_voice(expected.size() * kVadStep));
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    // Sums of about 400 products in float: 400 units of rounding at worst, and the sigmoid divides
    // the error of the score by four or more.
    EXPECT_NEAR(got[i], expected[i], 400 * 0x1p-24) << i;
  }
}

// Also far from speech: gates of large and tiny inputs.
TEST(SileroVad, GivesTheSameBitsInVectorsOfEverySize) {
  constexpr std::size_t kSteps = 60;
  std::vector<std::vector<float>> signals = {synthetic_voice(kSteps * kVadStep), std::vector<float>(kSteps * kVadStep)};
  for (const float factor : {1e4f, 1e-6f}) {
    signals.push_back(signals.front());
    for (float& v : signals.back()) v *= factor;
  }
  for (const int lanes : {8, 16}) {
    SileroVad wide(lanes), narrow(4);
    if (wide.lanes() != lanes) {
      std::cout << "skipped: this processor has no vectors of " << lanes << " floats\n";
      continue;
    }
    ASSERT_EQ(narrow.lanes(), 4);
    for (std::size_t i = 0; i < signals.size(); ++i) {
      std::vector<float> got, want;
      wide.steps(signals[i], got);
      narrow.steps(signals[i], want);
      EXPECT_EQ(got, want) << "signal " << i << " in vectors of " << lanes;
    }
  }
}

TEST(SileroVad, GivesTheSameBitsWhateverTheOrderOfItsItems) {
  constexpr std::size_t kSteps = 300;  // more than are in memory at a time
  const auto voice = synthetic_voice(kSteps * kVadStep);
  SileroVad alone, backwards, threads;
  const auto expected = probabilities(alone, voice);
  std::vector<float> got, of_threads;
  std::size_t items = 0;
  backwards.steps(voice, got, [&](std::size_t count, const std::function<void(std::size_t)>& body) {
    items += count;
    while (count-- > 0) body(count);
  });
  EXPECT_EQ(items, (kSteps + 7) / 8);
  EXPECT_EQ(got, expected);
  threads.steps(voice, of_threads, [](std::size_t count, const std::function<void(std::size_t)>& body) {
    std::thread other([&] { for (std::size_t i = 1; i < count; i += 2) body(i); });
    for (std::size_t i = 0; i < count; i += 2) body(i);
    other.join();
  });
  EXPECT_EQ(of_threads, expected);
}

TEST(SileroVad, GivesTheSameBitsForStepsTogetherAndAlone) {
  constexpr std::size_t kSteps = 45;
  const auto voice = synthetic_voice(kSteps * kVadStep);
  SileroVad alone;
  const auto expected = probabilities(alone, voice);
  for (const std::size_t together : {1, 2, 3, 7, 8, 9, 45}) {
    SileroVad vad;
    std::vector<float> got;
    for (std::size_t at = 0; at < kSteps; at += together) {
      vad.steps(std::span(voice).subspan(at * kVadStep, std::min(together, kSteps - at) * kVadStep), got);
    }
    EXPECT_EQ(got, expected) << together;
  }
}

TEST(SileroVad, StartsAnewAfterAReset) {
  SileroVad vad;
  const auto voice = synthetic_voice(40 * kVadStep);
  const auto first = probabilities(vad, voice);
  EXPECT_NE(probabilities(vad, voice), first);
  vad.reset();
  EXPECT_EQ(probabilities(vad, voice), first);
}

TEST(SileroVad, HearsNoSpeechInSilence) {
  SileroVad vad;
  for (const float p : probabilities(vad, std::vector<float>(40 * kVadStep))) EXPECT_LT(p, 0.3f);
}

std::vector<SampleRange> speech_of(std::span<const float> samples, const VadOptions& options,
                                   std::size_t push) {
  VadStream stream(options);
  std::vector<SampleRange> speech;
  for (std::size_t at = 0; at < samples.size(); at += push) {
    stream.push(samples.subspan(at, std::min(push, samples.size() - at)), speech);
  }
  stream.finish(speech);
  return speech;
}

TEST(VadStream, FindsTheSpeechOfARealClipWhateverThePushes) {
  OASR_REQUIRE_FULL_DATA();
  auto samples =
      testing::read_wav16(*testing::full_data() / "data/read_english_misc/audio/jfk.wav");
  const std::size_t clip = samples.size();
  samples.insert(samples.begin(), 5 * 16000, 0.0f);  // 5 s of silence around it
  samples.resize(samples.size() + 5 * 16000);
  const VadOptions options{.enabled = true};
  const auto whole = speech_of(samples, options, samples.size());
  EXPECT_EQ(speech_of(samples, options, 777), whole);
  EXPECT_EQ(speech_of(samples, options, 16000), whole);
  ASSERT_EQ(whole.size(), 1U);  // its pauses are shorter than 2 s
  EXPECT_NEAR(static_cast<double>(whole[0].begin), 5 * 16000, 8000);
  EXPECT_NEAR(static_cast<double>(whole[0].end), 5.0 * 16000 + static_cast<double>(clip), 12000);
  EXPECT_GT(speech_of(samples, {.enabled = true, .min_silence_ms = 100, .speech_pad_ms = 30}, 5000)
                .size(),
            2U);
}

TEST(HoldsSpeech, AsksEveryStepForItsProbability) {
  constexpr std::size_t kSilence = 100 * kVadStep;
  std::vector<float> samples(kSilence, 0.0f);
  const auto voice = synthetic_voice(60 * kVadStep + 100);
  samples.insert(samples.end(), voice.begin(), voice.end());
  SileroVad vad;
  float highest = 0;
  auto padded = samples;
  padded.resize((samples.size() + kVadStep - 1) / kVadStep * kVadStep);
  for (const float p : probabilities(vad, padded)) highest = std::max(highest, p);
  EXPECT_TRUE(holds_speech(samples, highest));
  EXPECT_FALSE(holds_speech(samples, std::nextafter(highest, 2.0f)));
  EXPECT_FALSE(holds_speech(std::span(samples).first(kSilence)));
  EXPECT_FALSE(holds_speech({}));
}

TEST(VadStream, FindsNothingInNothing) {
  EXPECT_TRUE(speech_of({}, {.enabled = true}, 1).empty());
  EXPECT_TRUE(speech_of(std::vector<float>(65 * 16000), {.enabled = true}, 16000).empty());
}

}  // namespace
}  // namespace oasr
