#include "features/log_mel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>

#include "features/mel_filters.h"
#include "testing/arrays.h"
#include "testing/paths.h"

namespace oasr {
namespace {

constexpr std::size_t kFrames = kWhisperFrames;

std::vector<float> noise(std::size_t samples, float amplitude, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> out(samples);
  for (float& v : out) v = amplitude * (static_cast<float>(random() >> 8) / (1 << 23) - 1.0f);
  return out;
}

// Loud and quiet stretches, as speech has.
std::vector<float> bursts(std::size_t samples, unsigned seed) {
  auto out = noise(samples, 1.0f, seed);
  for (std::size_t i = 0; i < samples; ++i) {
    const double slow = std::sin(static_cast<double>(i) / 3000.0);
    out[i] *= static_cast<float>(std::pow(slow, 8) * 0.7);
  }
  return out;
}

struct Streamed {
  std::vector<float> frames;
  float max_value;
};

Streamed stream(std::span<const float> samples, int n_mels, std::size_t push) {
  LogMelStream mel(n_mels);
  Streamed out;
  while (!samples.empty()) {
    const auto part = samples.first(std::min(push, samples.size()));
    mel.push(part, out.frames);
    samples = samples.subspan(part.size());
  }
  mel.finish(out.frames);
  out.max_value = mel.max_value();
  return out;
}

// A value in double from the definition, with a bound of the error that float arithmetic may make.
struct Bounded {
  double value = 0, error = 0;
};

// Powers of the 201 bins of frame `t` of a clip, reflected at its start and at 30 s.
std::vector<Bounded> reference_power(std::span<const float> samples, std::size_t t) {
  constexpr double kEps = std::numeric_limits<float>::epsilon();
  const auto angle = [](std::size_t i) {
    return 2 * std::numbers::pi * static_cast<double>(i) / 400;
  };
  static const auto roots = [&] {
    std::vector<std::pair<double, double>> out;
    for (std::size_t i = 0; i < 400; ++i) out.emplace_back(std::cos(angle(i)), std::sin(angle(i)));
    return out;
  }();
  std::vector<double> x(400);
  double norm = 0;
  for (std::size_t n = 0; n < 400; ++n) {
    auto i = std::abs(static_cast<std::ptrdiff_t>(160 * t + n) - 200);
    if (i >= kWhisperSamples) i = 2 * (kWhisperSamples - 1) - i;
    const auto at = static_cast<std::size_t>(i);
    x[n] = at < samples.size() ? samples[at] * (0.5 - 0.5 * roots[n].first) : 0.0;
    norm += x[n] * x[n];
  }
  // Four passes and a fold make an error of a few units of rounding each, relative to the norm of
  // all 400 bins (20 ||x||), and spread over the bins: 16 units of ||x|| for one bin.
  const double delta = 16 * kEps * std::sqrt(norm);
  std::vector<Bounded> power(201);
  for (std::size_t k = 0; k <= 200; ++k) {
    double re = 0, im = 0;
    for (std::size_t n = 0; n < 400; ++n) {
      re += x[n] * roots[n * k % 400].first;
      im -= x[n] * roots[n * k % 400].second;
    }
    const double p = re * re + im * im;
    power[k] = {p, 2 * std::sqrt(p) * delta + delta * delta + 4 * kEps * p};
  }
  return power;
}

// Log-mel of the decode() path; only the first `count` frames.
struct Reference {
  std::vector<double> values, bounds;  // [n_mels, count]
};

Reference reference(std::span<const float> samples, int n_mels, std::size_t count) {
  constexpr double kEps = std::numeric_limits<float>::epsilon();
  const auto filters = slaney_mel_filters(n_mels);
  // Frames that are not asked for still count for the maximum; beyond the clip they are silent.
  const std::size_t frames = std::min(kFrames, std::max(count, samples.size() / 160 + 2));
  std::vector<Bounded> energy(frames * filters.size());
  double max_energy = 1e-10;
  for (std::size_t t = 0; t < frames; ++t) {
    const auto power = reference_power(samples, t);
    for (std::size_t m = 0; m < filters.size(); ++m) {
      Bounded& e = energy[m * frames + t];
      for (std::size_t b = 0; b < filters[m].weights.size(); ++b) {
        const Bounded& bin = power[static_cast<std::size_t>(filters[m].first_bin) + b];
        e.value += filters[m].weights[b] * bin.value;
        e.error += filters[m].weights[b] * bin.error;
      }
      e.error += static_cast<double>(filters[m].weights.size()) * kEps * e.value;  // of the sum
      max_energy = std::max(max_energy, e.value);
    }
  }
  const double floor = std::log10(max_energy) - 8;
  const auto scaled = [&](double v) {
    return (std::max(std::log10(std::max(v, 1e-10)), floor) + 4) / 4;
  };
  Reference out;
  for (std::size_t m = 0; m < filters.size(); ++m) {
    for (std::size_t t = 0; t < count; ++t) {
      const auto [e, d] = energy[m * frames + t];
      out.values.push_back(scaled(e));
      // The floor itself moves with the maximum's error; log10, floor, sum and quotient round.
      out.bounds.push_back(
          std::max(scaled(e + d) - scaled(e), scaled(e) - scaled(std::max(e - d, 0.0))) + 8 * kEps);
    }
  }
  return out;
}

void expect_within_bounds(const std::vector<double>& values, const Reference& reference,
                          const char* what) {
  ASSERT_EQ(values.size(), reference.values.size());
  std::size_t worst = 0;
  const auto excess = [&](std::size_t i) {
    return std::abs(values[i] - reference.values[i]) / reference.bounds[i];
  };
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!(excess(i) <= excess(worst))) worst = i;
  }
  EXPECT_LE(excess(worst), 1.0) << what << " at " << worst << ": " << values[worst] << " for "
                                << reference.values[worst] << " +- " << reference.bounds[worst];
}

std::vector<double> first_frames(const std::vector<float>& mel, std::size_t count) {
  std::vector<double> out;
  for (std::size_t m = 0; m < mel.size() / kFrames; ++m) {
    out.insert(out.end(), mel.begin() + static_cast<std::ptrdiff_t>(m * kFrames),
               mel.begin() + static_cast<std::ptrdiff_t>(m * kFrames + count));
  }
  return out;
}

TEST(WhisperLogMel, FollowsItsDefinitionWithinTheErrorOfFloatArithmetic) {
  for (const int n_mels : {80, 128}) {
    const auto samples = bursts(20000, 1);
    expect_within_bounds(first_frames(whisper_log_mel(samples, n_mels), 130),
                         reference(samples, n_mels, 130), "bursts");
  }
}

TEST(WhisperLogMel, ReflectsBothEndsOfAFullWindow) {
  const auto samples = noise(kWhisperSamples, 0.1f, 2);
  expect_within_bounds(first_frames(whisper_log_mel(samples, 80), kFrames),
                       reference(samples, 80, kFrames), "full");
}

TEST(WhisperLogMel, AgreesWithTheGoldenFeatures) {
  OASR_REQUIRE_FULL_DATA();
  const auto file = *testing::full_data() / "goldens/features/golden.safetensors";
  for (const char* clip : {"a", "b", "c"}) {
    auto samples = testing::read_array(file, std::string(clip) + ".pcm16").floats();
    for (float& v : samples) v /= 32768.0f;
    for (const int n_mels : {80, 128}) {
      const auto golden =
          testing::read_array(file, std::string(clip) + ".whisper_logmel" + std::to_string(n_mels));
      const auto exact = reference(samples, n_mels, 400);
      expect_within_bounds(golden.values, exact, "golden");
      expect_within_bounds(first_frames(whisper_log_mel(samples, n_mels), 400), exact, clip);
    }
  }
}

TEST(WhisperLogMel, AgreesWithTheReferencesFeaturesOfRealClips) {
  OASR_REQUIRE_FULL_DATA();
  const auto data = *testing::full_data();
  for (const auto& [clip, wav] :
       {std::pair{"ps_goforward", "data/read_english_misc/audio/ps_goforward.wav"},
        std::pair{"an406-fcaw-b", "data/an4/audio/test/an406-fcaw-b.wav"}}) {
    const auto samples = testing::read_wav16(data / wav);
    const auto golden = testing::read_array(
        data / "goldens/whisper_real/base" / (std::string(clip) + ".npz"), "mel");
    const auto count = static_cast<std::size_t>(golden.shape[1]);
    const auto exact = reference(samples, 80, count);
    expect_within_bounds(golden.values, exact, "golden");
    expect_within_bounds(first_frames(whisper_log_mel(samples, 80), count), exact, clip);
  }
}

TEST(WhisperLogMel, TrimsWhatIsLongerThanAWindow) {
  auto samples = noise(kWhisperSamples + 5000, 0.1f, 3);
  const auto whole = whisper_log_mel(samples, 80);
  samples.resize(kWhisperSamples);
  EXPECT_EQ(whole, whisper_log_mel(samples, 80));
}

TEST(WhisperLogMel, GivesTheFloorForSilenceAndForNothing) {
  for (const std::size_t samples : {0, 1, 159, 399, 400, 1599}) {
    const auto mel = whisper_log_mel(std::vector<float>(samples), 80);
    ASSERT_EQ(mel.size(), 80 * kFrames);
    EXPECT_TRUE(std::all_of(mel.begin(), mel.end(), [](float v) { return v == -1.5f; }));
  }
}

TEST(LogMelStream, GivesTheSameBitsForAnySizesOfPushes) {
  const auto samples = bursts(17777, 4);
  const auto whole = stream(samples, 80, samples.size());
  EXPECT_EQ(whole.frames.size(), 17777 / 160 * 80U);
  for (const std::size_t push : {1, 7, 159, 160, 161, 400, 5000}) {
    const auto parts = stream(samples, 80, push);
    EXPECT_EQ(parts.frames, whole.frames) << push;
    EXPECT_EQ(parts.max_value, whole.max_value) << push;
  }
}

TEST(LogMelStream, EqualsTheClipPathWhereTheirDefinitionsAgree) {
  auto samples = bursts(48000, 5);
  samples[3] = 0.5f;  // not silent at the reflected start
  auto streamed = stream(samples, 128, 1000);
  whisper_normalize(streamed.frames, streamed.max_value);
  const auto clip = whisper_log_mel(samples, 128);
  for (std::size_t t = 0; t < 300; ++t) {
    for (std::size_t m = 0; m < 128; ++m)
      ASSERT_EQ(streamed.frames[t * 128 + m], clip[m * kFrames + t]);
  }
}

TEST(LogMelStream, CountsTheFramesAfterTheEndForTheMaximumButDoesNotHandThemOut) {
  // A click in the last sample: only frames past floor(samples / 160) see it near their middle.
  std::vector<float> samples(1599);
  samples.back() = 1.0f;
  const auto streamed = stream(samples, 80, 1599);
  EXPECT_EQ(streamed.frames.size(), 9 * 80U);
  EXPECT_GT(streamed.max_value,
            *std::max_element(streamed.frames.begin(), streamed.frames.end()) + 0.5f);
}

TEST(LogMelStream, ServesTheShortestStreams) {
  for (const std::size_t samples : {0, 1, 159, 160, 200, 201, 399, 400, 1599}) {
    const auto streamed = stream(noise(samples, 0.5f, 6), 80, 50);
    EXPECT_EQ(streamed.frames.size(), samples / 160 * 80) << samples;
    EXPECT_EQ(streamed.max_value > -10.0f, samples > 0) << samples;
  }
}

// All frames of the stream, and the maximum without them.
void expect_exact_maximum(std::span<const float> samples, int n_mels, const std::string& what) {
  const float expected = stream(samples, n_mels, 16000).max_value;
  for (const std::size_t push : {std::size_t{333}, std::size_t{16000}, samples.size() + 1}) {
    LogMelMaximum maximum(n_mels);
    for (std::size_t at = 0; at < samples.size(); at += push) {
      maximum.push(samples.subspan(at, std::min(push, samples.size() - at)));
    }
    EXPECT_EQ(maximum.finish(), expected) << what << ", pushes of " << push;
  }
}

TEST(LogMelMaximum, IsExactlyThatOfTheStream) {
  for (const int n_mels : {80, 128}) {
    for (const std::size_t samples : {0, 1, 200, 399, 1599}) {
      expect_exact_maximum(noise(samples, 0.5f, 7), n_mels, "short");
    }
    expect_exact_maximum(std::vector<float>(30000), n_mels, "silence");
    expect_exact_maximum(bursts(100000, 8), n_mels, "bursts");
    expect_exact_maximum(noise(50000, 0.3f, 9), n_mels, "noise");
    expect_exact_maximum(noise(50000, 1e-6f, 10), n_mels, "near the floor");
    // Tones put all their energy into the filter of the largest weight: the bound is tight.
    for (const double hz : {30.0, 40.0, 80.0, 1000.0, 7990.0}) {
      std::vector<float> tone(40000);
      for (std::size_t i = 0; i < tone.size(); ++i) {
        tone[i] = static_cast<float>(
            std::sin(2 * std::numbers::pi * hz * static_cast<double>(i) / 16000) * 0.5 *
            (1 + 0.2 * std::sin(static_cast<double>(i) / 5000)));
      }
      expect_exact_maximum(tone, n_mels, "tone of " + std::to_string(hz));
    }
    std::vector<float> clicks(40000);
    for (std::size_t i = 7; i < clicks.size(); i += 1777) clicks[i] = 0.9f;
    expect_exact_maximum(clicks, n_mels, "clicks");
  }
}

TEST(LogMelMaximum, TransformsAFractionOfTheFramesOfSpeech) {
  OASR_REQUIRE_FULL_DATA();
  const auto samples =
      testing::read_wav16(*testing::full_data() / "data/read_english_misc/audio/jfk.wav");
  expect_exact_maximum(samples, 80, "jfk");
  LogMelMaximum maximum(80);
  for (std::size_t at = 0; at < samples.size(); at += 16000) {
    maximum.push(std::span(samples).subspan(at, std::min<std::size_t>(16000, samples.size() - at)));
  }
  maximum.finish();
  EXPECT_LT(maximum.frames_transformed(), static_cast<std::int64_t>(samples.size() / 160 / 3));
}

TEST(LogMel, SurvivesNanAndInfinity) {
  auto samples = noise(5000, 0.1f, 11);
  samples[1000] = std::numeric_limits<float>::quiet_NaN();
  samples[3000] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(whisper_log_mel(samples, 80).size(), 80 * kFrames);
  EXPECT_EQ(stream(samples, 80, 100).frames.size(), 31 * 80U);
  LogMelMaximum maximum(80);
  maximum.push(samples);
  maximum.finish();
}

}  // namespace
}  // namespace oasr
