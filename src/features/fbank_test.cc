#include "features/fbank.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>

#include "features/logarithm.h"
#include "testing/arrays.h"
#include "testing/paths.h"

namespace oasr {
namespace {

constexpr double kEps = std::numeric_limits<float>::epsilon();

std::vector<float> noise(std::size_t samples, float amplitude, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> out(samples);
  for (float& v : out) v = amplitude * (static_cast<float>(random() >> 8) / (1 << 23) - 1.0f);
  return out;
}

// Log mel energies in double from the definition, with bounds of what float arithmetic may add.
struct Reference {
  std::vector<double> values, bounds;
};

double mel(double hz) { return 1127.0 * std::log(1.0 + hz / 700.0); }

// The windowed frame in double, and a bound of the norm of its error: `scale` bounds the samples. Sums,
// differences and products of float: of the mean at most N/4 roundings of partial sums, then four more
// operations, each relative to values that are at most 2 · scale.
struct Windowed {
  std::vector<double> x;
  double error = 0;
};
Windowed windowed(const std::vector<double>& frame, FbankWindow window) {
  const std::size_t size = frame.size();
  double mean = 0, largest = 0;
  for (const double v : frame) mean += v / static_cast<double>(size);
  for (const double v : frame) largest = std::max(largest, std::abs(v));
  Windowed out{.x = std::vector<double>(size)};
  for (std::size_t i = 0; i < size; ++i) {
    const double cosine = std::cos(2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(size - 1));
    const double weight = window == FbankWindow::povey     ? std::pow(0.5 - 0.5 * cosine, 0.85)
                          : window == FbankWindow::hamming ? 0.54 - 0.46 * cosine
                                                           : 1.0;
    const double before = frame[i == 0 ? 0 : i - 1] - mean;
    out.x[i] = (frame[i] - mean - 0.97 * before) * weight;
  }
  // The error of the mean shifts all samples by the same, of which pre-emphasis leaves 3 %.
  const double of_mean = 0.03 * static_cast<double>(size) / 4 * kEps * largest;
  out.error = (of_mean + 8 * kEps * largest) * std::sqrt(static_cast<double>(size));
  return out;
}

Reference reference(const std::vector<float>& samples, const FbankOptions& options) {
  const Fbank shape = Fbank::make(options).value();
  const auto size = static_cast<std::size_t>(shape.window_samples()), shift = static_cast<std::size_t>(shape.shift_samples());
  const std::size_t points = std::bit_ceil(size), bins = points / 2;
  const double nyquist = options.sample_rate / 2.0;
  const double low = mel(options.low_hz), high = mel(options.high_hz > 0 ? options.high_hz : nyquist + options.high_hz);
  const double step = (high - low) / (options.num_mel_bins + 1);
  std::vector<double> cosine(points), sine(points);
  for (std::size_t i = 0; i < points; ++i) {
    cosine[i] = std::cos(2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(points));
    sine[i] = std::sin(2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(points));
  }
  Reference out;
  const auto total = static_cast<std::ptrdiff_t>(samples.size());
  for (std::int64_t t = 0; t < shape.frames(total); ++t) {
    std::vector<double> frame(size);
    std::ptrdiff_t begin = static_cast<std::ptrdiff_t>(t) * static_cast<std::ptrdiff_t>(shift);
    if (!options.snip_edges) begin += static_cast<std::ptrdiff_t>(shift / 2) - static_cast<std::ptrdiff_t>(size / 2);
    for (std::size_t i = 0; i < size; ++i) {
      std::ptrdiff_t at = begin + static_cast<std::ptrdiff_t>(i);
      while (at < 0 || at >= total) at = at < 0 ? -1 - at : 2 * total - 1 - at;
      frame[i] = static_cast<double>(samples[static_cast<std::size_t>(at)]) * options.scale;
    }
    const Windowed w = windowed(frame, options.window);
    double norm = 0;
    for (const double v : w.x) norm += v * v;
    // A transform spreads a norm evenly over its bins, up to a factor that chance seldom reaches: one
    // bin of the error of the samples is at most their norm; of the passes' roundings (log2 of the
    // points, few a pass), 16 units of the signal's norm.
    const double delta = w.error + 16 * kEps * std::sqrt(norm);
    std::vector<double> power(bins), error(bins);
    for (std::size_t k = 0; k < bins; ++k) {
      double re = 0, im = 0;
      for (std::size_t n = 0; n < size; ++n) {
        re += w.x[n] * cosine[n * k % points];
        im -= w.x[n] * sine[n * k % points];
      }
      power[k] = re * re + im * im;
      error[k] = 2 * std::sqrt(power[k]) * delta + delta * delta + 4 * kEps * power[k];
    }
    for (int m = 0; m < options.num_mel_bins; ++m) {
      const double left = low + m * step;
      double e = 0, d = 0;
      for (std::size_t k = 0; k < bins; ++k) {
        const double at = mel(options.sample_rate * static_cast<double>(k) / static_cast<double>(points));
        const double weight = std::max(0.0, std::min(at - left, left + 2 * step - at) / step);
        // The reference computes mel frequencies in float: each of three is off by some units of the largest.
        const double off = std::abs(at - left - step) < step * 1.01 ? 4 * kEps * mel(nyquist) / step : 0;
        e += weight * power[k];
        d += (weight + off) * error[k] + off * power[k] + 32 * kEps * weight * power[k];
      }
      const auto log_of = [](double v) { return std::log(std::max(v, std::ldexp(1.0, -23))); };
      out.values.push_back(log_of(e));
      out.bounds.push_back(std::max(log_of(e + d) - log_of(e), log_of(e) - log_of(std::max(e - d, 0.0))) +
                           kEps * std::max(1.0, std::abs(log_of(e))));
    }
  }
  return out;
}

// Everything within its bound and, as bounds are of the worst case, `typical` on average.
void expect_within_bounds(const std::vector<double>& values, const Reference& exact, const std::string& what) {
  ASSERT_EQ(values.size(), exact.values.size()) << what;
  double worst = 0, mean = 0, most = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double off = std::abs(values[i] - exact.values[i]);
    if (!(off / exact.bounds[i] <= worst)) worst = off / exact.bounds[i];
    mean += off / static_cast<double>(values.size());
    most = std::max(most, off);
  }
  std::printf("%s: mean error %.2g, largest %.2g, at most %.2g of its bound\n", what.c_str(), mean, most, worst);
  EXPECT_LE(worst, 1.0) << what;
}

std::vector<double> doubles(const std::vector<float>& values) { return {values.begin(), values.end()}; }

TEST(Fbank, FollowsItsDefinitionWithinTheErrorOfFloatArithmetic) {
  const auto samples = noise(6000, 0.3f, 1);
  for (const FbankOptions& options :
       {FbankOptions{}, FbankOptions{.window = FbankWindow::hamming, .snip_edges = false},
        FbankOptions{.sample_rate = 8000, .num_mel_bins = 40, .low_hz = 100, .high_hz = -200},
        FbankOptions{.sample_rate = 44100, .num_mel_bins = 128, .frame_shift_ms = 12.5, .window = FbankWindow::rectangular},
        FbankOptions{.num_mel_bins = 23, .frame_length_ms = 32, .frame_shift_ms = 40, .scale = 1, .snip_edges = false}}) {
    expect_within_bounds(doubles(fbank(samples, options).value()), reference(samples, options),
                         std::to_string(options.sample_rate) + " Hz");
  }
}

TEST(Fbank, AgreesWithTheGoldenFeatures) {
  OASR_REQUIRE_FULL_DATA();
  const auto file = *testing::full_data() / "goldens/features/golden.safetensors";
  const std::pair<const char*, FbankOptions> kinds[] = {
      {".kaldi_fbank80_povey_snip", {}},
      {".kaldi_fbank80_hamming_snip", {.window = FbankWindow::hamming}},
      {".kaldi_fbank80_povey_nosnip_hf-400", {.high_hz = -400, .scale = 1, .snip_edges = false}},
  };
  for (const std::string clip : {"a", "b", "c"}) {
    auto samples = testing::read_array(file, clip + ".pcm16").floats();
    for (float& v : samples) v /= 32768.0f;
    for (const auto& [name, options] : kinds) {
      const auto exact = reference(samples, options);
      expect_within_bounds(testing::read_array(file, clip + name).values, exact, clip + name + " golden");
      expect_within_bounds(doubles(fbank(samples, options).value()), exact, clip + name);
    }
  }
}

TEST(Fbank, AgreesWithTheReferencesFeaturesOfRealClips) {
  OASR_REQUIRE_FULL_DATA();
  const auto data = *testing::full_data();
  for (const auto& [clip, wav] : {std::pair{"an406-fcaw-b", "data/an4/audio/test/an406-fcaw-b.wav"},
                                  std::pair{"000030040", "data/speechocean762/audio/000030040.wav"}}) {
    const auto samples = testing::read_wav16(data / wav);
    const auto golden = testing::read_array(
        data / "goldens/u2pp_real" / ("encoder_" + std::string(clip) + ".npz"), "features");
    auto exact = reference(samples, {});
    expect_within_bounds(doubles(fbank(samples, {}).value()), exact, clip);
    // The golden is stored as float16: 11 bits of values up to 32.
    for (std::size_t i = 0; i < exact.bounds.size(); ++i) exact.bounds[i] += std::abs(exact.values[i]) * 0x1p-11;
    expect_within_bounds(golden.values, exact, std::string(clip) + " golden");
  }
}

TEST(Fbank, GivesTheSameBitsForAnySizesOfPushes) {
  const auto samples = noise(9999, 0.5f, 4);
  for (const bool snip : {true, false}) {
    const FbankOptions options{.num_mel_bins = 40, .snip_edges = snip};
    const auto whole = fbank(samples, options).value();
    EXPECT_EQ(whole.size(), static_cast<std::size_t>(snip ? (9999 - 400) / 160 + 1 : (9999 + 80) / 160) * 40);
    Fbank stream = Fbank::make(options).value();
    for (const std::size_t push : {1, 7, 159, 160, 161, 400, 5000}) {  // finish() starts over
      std::vector<float> parts;
      for (std::size_t at = 0; at < samples.size(); at += push) {
        stream.push(std::span(samples).subspan(at, std::min(push, samples.size() - at)), parts);
      }
      stream.finish(parts);
      EXPECT_EQ(parts, whole) << push;
    }
  }
}

TEST(Fbank, HandsOutAFrameAsSoonAsItsLastSampleIsThere) {
  Fbank stream = Fbank::make({}).value();
  const auto samples = noise(560, 0.5f, 4);
  std::vector<float> frames;
  stream.push(std::span(samples).first(399), frames);
  EXPECT_EQ(frames.size(), 0u);
  stream.push(std::span(samples).subspan(399, 1), frames);
  EXPECT_EQ(frames.size(), 80u);
  stream.push(std::span(samples).subspan(400, 159), frames);
  EXPECT_EQ(frames.size(), 80u);
  stream.push(std::span(samples).subspan(559, 1), frames);
  EXPECT_EQ(frames.size(), 160u);
}

TEST(Fbank, GivesTheFloorForSilenceAndNothingForLessThanAFrame) {
  const auto silence = fbank(std::vector<float>(800), {}).value();
  ASSERT_EQ(silence.size(), 3 * 80u);
  for (const float v : silence) EXPECT_EQ(v, static_cast<float>(-23 * std::numbers::ln2));
  for (const std::size_t samples : {0, 1, 399}) EXPECT_TRUE(fbank(noise(samples, 1, 2), {})->empty());
  // Without snip_edges a shift is enough for a frame, mirrored to and fro.
  for (const std::size_t samples : {0, 1, 79, 80, 120, 239, 240}) {
    EXPECT_EQ(fbank(noise(samples, 1, 2), {.snip_edges = false})->size(), (samples + 80) / 160 * 80);
  }
}

TEST(Fbank, HandsOnNanInItsFramesOnly) {
  auto samples = noise(4000, 0.1f, 11);
  const auto clean = fbank(samples, {}).value();
  samples[1000] = std::numeric_limits<float>::quiet_NaN();
  const auto frames = fbank(samples, {}).value();
  for (std::size_t t = 0; t < frames.size() / 80; ++t) {
    const bool touched = t * 160 <= 1000 && 1000 < t * 160 + 400;
    for (std::size_t m = 0; m < 80; ++m) {
      const float value = frames[t * 80 + m];
      EXPECT_TRUE(touched ? std::isnan(value) : value == clean[t * 80 + m]) << t << ", " << m;
    }
  }
}

TEST(Fbank, RefusesOptionsByName) {
  const std::pair<FbankOptions, const char*> cases[] = {
      {{.sample_rate = 0}, "sample rate of 0"},
      {{.num_mel_bins = 0}, "num_mel_bins is 0"},
      {{.num_mel_bins = 300}, "with num_mel_bins 300 triangle 2 holds no bin"},
      {{.frame_length_ms = 0}, "frame_length is 0"},
      {{.frame_length_ms = std::nan("")}, "frame_length"},
      {{.frame_shift_ms = 1e9}, "frame_shift"},
      {{.frame_shift_ms = 0.01}, "frame_shift"},
      {{.low_hz = -1}, "frequencies"},
      {{.low_hz = 8000}, "frequencies"},
      {{.high_hz = 8001}, "frequencies"},
      {{.high_hz = -7990}, "frequencies"},
      {{.high_hz = std::nan("")}, "frequencies"},
      {{.scale = std::numeric_limits<float>::infinity()}, "scale"},
  };
  for (const auto& [options, says] : cases) {
    const auto made = Fbank::make(options);
    ASSERT_FALSE(made) << says;
    EXPECT_EQ(made.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(made.error().message().find(says), std::string::npos) << made.error().message();
  }
}

TEST(NaturalLog, IsRoundedToNearestButForWhatDoubleCanNotTell) {
  std::mt19937 random(1);
  double worst = 0;
  for (int i = 0; i < 2'000'000; ++i) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(0x00800000u + random() % (0x7F800000u - 0x00800000u)));
    float y = 0;
    natural_log({&x, 1}, {&y, 1});
    const double exact = std::log(static_cast<double>(x));
    int exponent = 0;
    std::frexp(exact, &exponent);
    worst = std::max(worst, std::abs(y - exact) / std::ldexp(1.0, exponent - 24));
  }
  // Half a unit, and 2⁻⁴¹ of the value: 2⁻¹⁷ units. (A value is 2²³ to 2²⁴ units.)
  EXPECT_LE(worst, 0.5 + 0x1p-17);
}

TEST(NaturalLog, KeepsTheLimits) {
  const float x[] = {1.0f, std::numeric_limits<float>::infinity(), std::nanf(""), 2.0f};
  float y[4];
  natural_log(x, y);
  EXPECT_EQ(y[0], 0.0f);
  EXPECT_EQ(y[1], x[1]);
  EXPECT_TRUE(std::isnan(y[2]));
  EXPECT_EQ(y[3], std::numbers::ln2_v<float>);
}

TEST(Fbank, SamplesOfSixteenBitsStayAndOthersAreRoundedToThem) {
  std::vector<float> samples = {0.0f, 1.0f, -1.0f, 12345.0f / 32768, 0.3f, 0.4f / 32768, 1.5f / 32768, 2.5f / 32768, 1.7f};
  round_to_16_bits(samples);
  const std::vector<float> expected = {0.0f, 1.0f, -1.0f, 12345.0f / 32768, 9830.0f / 32768, 0.0f, 2.0f / 32768,
                                       2.0f / 32768, 55706.0f / 32768};
  EXPECT_EQ(samples, expected);
}

}  // namespace
}  // namespace oasr
