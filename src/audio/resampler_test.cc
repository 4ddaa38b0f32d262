#include "audio/resampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "audio/wav_bytes.h"

namespace oasr {
namespace {

using testing::tone;

std::vector<float> resample(std::span<const float> samples, int from, int to, std::size_t piece) {
  auto resampler = Resampler::create(from, to);
  EXPECT_TRUE(resampler);
  std::vector<float> out;
  for (std::size_t i = 0; i < samples.size(); i += piece) {
    EXPECT_TRUE(resampler->push(samples.subspan(i, std::min(piece, samples.size() - i)), out));
  }
  EXPECT_TRUE(resampler->finish(out));
  return out;
}

// The part of `samples` that is the sine of `hertz` (least squares), against what is left, in dB.
double tone_to_rest(std::span<const float> samples, double hertz, int sample_rate) {
  double ss = 0, cc = 0, sc = 0, sx = 0, cx = 0, xx = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double phase = 2 * std::numbers::pi * hertz * static_cast<double>(i) / sample_rate;
    const double s = std::sin(phase), c = std::cos(phase), x = static_cast<double>(samples[i]);
    ss += s * s, cc += c * c, sc += s * c, sx += s * x, cx += c * x, xx += x * x;
  }
  const double det = ss * cc - sc * sc;
  const double a = (sx * cc - cx * sc) / det, b = (cx * ss - sx * sc) / det;
  const double signal = a * sx + b * cx;
  return 10 * std::log10(signal / std::max(xx - signal, 1e-30));
}

TEST(Resampler, GivesTheRoundedLength) {
  for (const auto& [from, to] : {std::pair{44100, 16000},
                                 {48000, 16000},
                                 {8000, 16000},
                                 {22050, 16000},
                                 {11025, 16000},
                                 {96000, 16000},
                                 {16000, 8000},
                                 {768000, 16000}}) {
    for (const std::size_t count : {0, 1, 2, 3, 159, 160, 1000, 44'099, 44'100, 44'101, 100'003}) {
      const std::vector<float> samples(count, 0.25F);
      const auto expected =
          static_cast<std::size_t>(std::floor(static_cast<double>(count) * to / from + 0.5));
      EXPECT_EQ(resample(samples, from, to, 4096).size(), expected)
          << count << " samples, " << from << " to " << to;
    }
  }
}

TEST(Resampler, EqualRatesChangeNothing) {
  const std::vector<float> samples = {0.1F, -2.5F, 1e-20F};
  EXPECT_EQ(resample(samples, 16000, 16000, 2), samples);
}

TEST(Resampler, DoesNotDependOnHowTheInputIsCut) {
  const auto samples = tone(300, 44100, 10'000);
  const auto whole = resample(samples, 44100, 16000, samples.size());
  for (const std::size_t piece : {1, 7, 160, 4096}) {
    EXPECT_EQ(resample(samples, 44100, 16000, piece), whole) << piece;
  }
}

// soxr's high quality promises 20 bits, so 120 dB; the edges, where the signal starts and stops,
// are left out. Float samples alone would allow 140 dB.
TEST(Resampler, KeepsAToneCleanAndInPlace) {
  for (const int from : {8000, 22050, 44100, 48000}) {
    const auto out =
        resample(tone(1000, from, static_cast<std::size_t>(2 * from)), from, 16000, 4096);
    const auto middle = std::span(out).subspan(4000, 24'000);
    EXPECT_GT(tone_to_rest(middle, 1000, 16000), 115) << from;
    const auto expected = tone(1000, 16000, out.size());
    for (std::size_t i = 4000; i < 4100; ++i) {
      EXPECT_NEAR(out[i], expected[i], 0.5 * 1e-3)
          << "delayed, from " << from;  // 0.01 dB passband ripple
    }
  }
}

TEST(Resampler, RemovesWhatTheTargetRateCanNotHold) {
  const auto out = resample(tone(9000, 44100, 88'200), 44100, 16000, 4096);
  float peak = 0;
  for (std::size_t i = 4000; i < out.size() - 4000; ++i) peak = std::max(peak, std::abs(out[i]));
  EXPECT_LT(peak, 0.5F * 1e-5F);  // 100 dB below
}

}  // namespace
}  // namespace oasr
