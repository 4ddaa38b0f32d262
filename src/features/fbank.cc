#include "features/fbank.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "base/check.h"
#include "features/mel_frames.h"

namespace oasr {
namespace {

constexpr float kFbankFloor = 0x1p-23f;

constexpr std::array kWindowNames = {
    EnumName<FbankWindow>{FbankWindow::povey, "povey"},
    EnumName<FbankWindow>{FbankWindow::hamming, "hamming"},
    EnumName<FbankWindow>{FbankWindow::hanning, "hanning"},
    EnumName<FbankWindow>{FbankWindow::rectangular, "rectangular"},
};

struct Geometry {
  std::size_t window = 0, shift = 0, transform = 0;  // samples
  double low_hz = 0, high_hz = 0;
};

Unexpected bad_option(std::string what, std::string remedy) {
  return unexpected(ErrorCode::invalid_argument, std::move(what), "fbank", std::move(remedy));
}

Result<Geometry> geometry(const FbankOptions& options) {
  constexpr int kLeastRate = 1000, kMostRate = 384'000, kMostBins = 1000;
  constexpr double kMostMs = 1000;
  if (options.sample_rate < kLeastRate || options.sample_rate > kMostRate) {
    return bad_option("a sample rate of " + std::to_string(options.sample_rate) + " Hz",
                      "give one from 1000 to 384000 Hz");
  }
  const auto samples = [&](double ms) { return static_cast<std::size_t>(options.sample_rate * 0.001 * ms); };
  for (const auto& [ms, name] : {std::pair{options.frame_length_ms, "frame_length"}, {options.frame_shift_ms, "frame_shift"}}) {
    if (!(ms > 0 && ms <= kMostMs) || samples(ms) < 1) {
      return bad_option(std::string(name) + " is " + std::to_string(ms) + " ms", "give one up to 1000 ms");
    }
  }
  if (options.num_mel_bins < 1 || options.num_mel_bins > kMostBins) {
    return bad_option("num_mel_bins is " + std::to_string(options.num_mel_bins), "give 1 to 1000");
  }
  if (!std::isfinite(options.scale)) return bad_option("the scale of samples is not finite", "give 32768 or 1");
  Geometry g{.window = samples(options.frame_length_ms), .shift = samples(options.frame_shift_ms)};
  g.transform = std::max<std::size_t>(8, std::bit_ceil(g.window));
  const double nyquist = 0.5 * options.sample_rate;
  g.low_hz = options.low_hz;
  g.high_hz = options.high_hz > 0 ? options.high_hz : nyquist + options.high_hz;
  if (g.window < 2 || !(g.low_hz >= 0 && g.low_hz < g.high_hz && g.high_hz <= nyquist)) {
    return bad_option("frequencies from " + std::to_string(g.low_hz) + " to " + std::to_string(g.high_hz) + " Hz of " +
                          std::to_string(g.window) + " samples a frame",
                      "low_freq is at least 0 and below high_freq, which is at most half the sample rate");
  }
  return g;
}

std::vector<float> window_of(FbankWindow window, std::size_t size) {
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) {
    const double cosine = std::cos(2.0 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(size - 1));
    double value = 1.0;
    if (window == FbankWindow::povey) value = std::pow(0.5 - 0.5 * cosine, 0.85);
    if (window == FbankWindow::hamming) value = 0.54 - 0.46 * cosine;
    if (window == FbankWindow::hanning) value = 0.5 - 0.5 * cosine;
    values[i] = static_cast<float>(value);
  }
  return values;
}

// Weights of the bins below half the rate.
Result<std::vector<MelFilter>> triangles_of(const FbankOptions& options, const Geometry& g) {
  const auto mel = [](double hz) { return 1127.0 * std::log(1.0 + hz / 700.0); };
  const double low = mel(g.low_hz), step = (mel(g.high_hz) - low) / (options.num_mel_bins + 1);
  const double bin_hz = static_cast<double>(options.sample_rate) / static_cast<double>(g.transform);
  std::vector<double> mel_of_bin(g.transform / 2);
  for (std::size_t bin = 0; bin < mel_of_bin.size(); ++bin) mel_of_bin[bin] = mel(bin_hz * static_cast<double>(bin));
  std::vector<MelFilter> triangles(static_cast<std::size_t>(options.num_mel_bins));
  for (std::size_t n = 0; n < triangles.size(); ++n) {
    const double left = low + static_cast<double>(n) * step, right = left + 2 * step;
    for (std::size_t bin = 0; bin < mel_of_bin.size(); ++bin) {
      const double weight = std::min(mel_of_bin[bin] - left, right - mel_of_bin[bin]) / step;
      if (!(weight > 0)) continue;
      if (triangles[n].weights.empty()) triangles[n].first_bin = static_cast<int>(bin);
      triangles[n].weights.push_back(static_cast<float>(weight));
    }
    if (!triangles[n].weights.empty()) continue;
    return bad_option("with num_mel_bins " + std::to_string(options.num_mel_bins) + " triangle " + std::to_string(n) +
                          " holds no bin of a transform of " + std::to_string(g.transform) + " samples",
                      "give fewer bins or a longer frame_length");
  }
  return triangles;
}

}  // namespace

std::span<const EnumName<FbankWindow>> fbank_window_names() { return kWindowNames; }

Result<MelRecipe> fbank_recipe(const FbankOptions& options) {
  const Geometry g = TRY(geometry(options));
  auto triangles = TRY(triangles_of(options, g));
  return MelRecipe{.window = g.window,
                   .hop = g.shift,
                   .transform = g.transform,
                   .emphasised = true,
                   .scale = options.scale,
                   .weights = window_of(options.window, g.window),
                   .filters = std::move(triangles),
                   .floor = kFbankFloor,
                   .log = LogBase::e};
}

struct Fbank::State {
  State(const FbankOptions& with, MelRecipe recipe, MelDevice* device)
      : options(with), window(static_cast<std::ptrdiff_t>(recipe.window)),
        shift(static_cast<std::ptrdiff_t>(recipe.hop)), mel(std::move(recipe), device) {
    // The frames begin where a recording would with snip_edges; else half a window earlier.
    if (!options.snip_edges) start = shift / 2 - window / 2;
  }

  std::int64_t frames(std::int64_t samples) const {
    if (!options.snip_edges) return (samples + shift / 2) / shift;
    return samples < window ? 0 : (samples - window) / shift + 1;
  }

  // The first sample of a frame, in the recording.
  std::ptrdiff_t begin(std::int64_t frame) const { return start + static_cast<std::ptrdiff_t>(frame) * shift; }

  // The samples [from, to) of the recording; beyond its ends, a mirrored copy in `edge`.
  const float* samples(std::ptrdiff_t from, std::ptrdiff_t to) {
    const auto total = static_cast<std::ptrdiff_t>(pushed);
    const auto at = [&](std::ptrdiff_t i) { return static_cast<std::size_t>(i - static_cast<std::ptrdiff_t>(dropped)); };
    if (from >= 0 && to <= total) return &buffer[at(from)];
    edge.clear();
    for (std::ptrdiff_t i = from; i < to; ++i) {
      std::ptrdiff_t sample = i;
      while (sample < 0 || sample >= total) sample = sample < 0 ? -sample - 1 : 2 * total - 1 - sample;
      edge.push_back(buffer[at(sample)]);
    }
    return edge.data();
  }

  // Computes frames [next, end): those within the recording where they lie, those that reach over an end as a
  // copy.
  void compute(std::int64_t end, std::vector<float>& out) {
    const auto total = static_cast<std::ptrdiff_t>(pushed);
    while (next < end) {
      std::int64_t stop = next;
      while (stop < end && begin(stop) < 0) ++stop;
      if (stop == next && begin(next) + window <= total) stop = std::min(end, next + (total - begin(next) - window) / shift + 1);
      if (stop == next) stop = end;
      const auto count = static_cast<std::size_t>(stop - next);
      const std::size_t base = out.size();
      out.resize(base + count * mel.filters());
      mel.compute(samples(begin(next), begin(stop - 1) + window), count, {.logs = out.data() + base, .greatest = nullptr});
      next = stop;
    }
  }

  void push(std::span<const float> more, std::vector<float>& out) {
    buffer.insert(buffer.end(), more.begin(), more.end());
    pushed += more.size();
    std::int64_t ready = next;
    const auto total = static_cast<std::ptrdiff_t>(pushed);
    if (total - begin(next) >= window) ready = next + (total - begin(next) - window) / shift + 1;
    compute(ready, out);
    const auto needed = std::clamp<std::ptrdiff_t>(begin(next), 0, total);
    const auto drop = static_cast<std::size_t>(needed) - dropped;
    buffer.erase(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(drop));
    dropped += drop;
  }

  void finish(std::vector<float>& out) {
    compute(frames(static_cast<std::int64_t>(pushed)), out);
    buffer.clear();
    pushed = dropped = 0;
    next = 0;
  }

  FbankOptions options;
  std::ptrdiff_t window, shift;
  std::ptrdiff_t start = 0;
  MelFrames mel;
  std::vector<float> edge;
  std::vector<float> buffer;  // the samples from `dropped` on
  std::size_t pushed = 0, dropped = 0;
  std::int64_t next = 0;  // frame
};

Result<Fbank> Fbank::make(const FbankOptions& options, MelDevice* device) {
  auto recipe = TRY(fbank_recipe(options));
  return Fbank(std::make_unique<State>(options, std::move(recipe), device));
}

Fbank::Fbank(std::unique_ptr<State> state) : state_(std::move(state)) {}
Fbank::~Fbank() = default;
Fbank::Fbank(Fbank&&) noexcept = default;
Fbank& Fbank::operator=(Fbank&&) noexcept = default;

const FbankOptions& Fbank::options() const { return state_->options; }
std::int64_t Fbank::window_samples() const { return state_->window; }
std::int64_t Fbank::shift_samples() const { return state_->shift; }
std::int64_t Fbank::frames(std::int64_t samples) const { return state_->frames(samples); }

void Fbank::push(std::span<const float> samples, std::vector<float>& frames) { state_->push(samples, frames); }
void Fbank::finish(std::vector<float>& frames) { state_->finish(frames); }

Result<std::vector<float>> fbank(std::span<const float> samples, const FbankOptions& options, MelDevice* device) {
  Fbank stream = TRY(Fbank::make(options, device));
  std::vector<float> frames;
  frames.reserve(static_cast<std::size_t>(stream.frames(static_cast<std::int64_t>(samples.size())) *
                                          options.num_mel_bins));
  stream.push(samples, frames);
  stream.finish(frames);
  return frames;
}

void round_to_16_bits(std::span<float> samples) {
  for (float& sample : samples) sample = std::nearbyint(sample * 32768.0f) / 32768.0f;
}

}  // namespace oasr
