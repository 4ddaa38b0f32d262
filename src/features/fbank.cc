#include "features/fbank.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "base/check.h"
#include "features/natural_log.h"
#include "features/power_spectrum.h"

namespace oasr {
namespace {

constexpr float kPreemphasis = 0.97f;
constexpr float kEnergyFloor = 0x1p-23f;

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

// A triangle: weights of the bins from `first`.
struct Triangle {
  std::size_t first = 0;
  std::vector<float> weights;
};

Result<std::vector<Triangle>> triangles_of(const FbankOptions& options, const Geometry& g) {
  const auto mel = [](double hz) { return 1127.0 * std::log(1.0 + hz / 700.0); };
  const double low = mel(g.low_hz), step = (mel(g.high_hz) - low) / (options.num_mel_bins + 1);
  const double bin_hz = static_cast<double>(options.sample_rate) / static_cast<double>(g.transform);
  std::vector<Triangle> triangles(static_cast<std::size_t>(options.num_mel_bins));
  for (std::size_t n = 0; n < triangles.size(); ++n) {
    const double left = low + static_cast<double>(n) * step, right = left + 2 * step;
    for (std::size_t bin = 0; bin < g.transform / 2; ++bin) {
      const double at = mel(bin_hz * static_cast<double>(bin));
      const double weight = std::min(at - left, right - at) / step;
      if (!(weight > 0)) continue;
      if (triangles[n].weights.empty()) triangles[n].first = bin;
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

struct Fbank::State {
  State(const FbankOptions& with, const Geometry& g, std::vector<Triangle> mel)
      : options(with), window(g.window), shift(g.shift), triangles(std::move(mel)),
        weights(window_of(with.window, g.window)), edges(kFrameLanes * g.window), x(g.window),
        transform(g.transform), energies(triangles.size() * kFrameLanes) {
    // The triangles begin where a recording would with snip_edges; else half a window earlier.
    if (!options.snip_edges) start = static_cast<std::ptrdiff_t>(shift / 2) - static_cast<std::ptrdiff_t>(window / 2);
  }

  std::int64_t frames(std::int64_t samples) const {
    const auto w = static_cast<std::int64_t>(window), s = static_cast<std::int64_t>(shift);
    if (!options.snip_edges) return (samples + s / 2) / s;
    return samples < w ? 0 : (samples - w) / s + 1;
  }

  // The first sample of a frame, in the recording.
  std::ptrdiff_t begin(std::int64_t frame) const { return start + static_cast<std::ptrdiff_t>(frame) * static_cast<std::ptrdiff_t>(shift); }

  // The samples of a frame; at an end of the recording, a mirrored copy in edges[lane].
  const float* samples_of(std::int64_t frame, std::size_t lane) {
    const std::ptrdiff_t from = begin(frame), size = static_cast<std::ptrdiff_t>(window);
    const auto total = static_cast<std::ptrdiff_t>(pushed);
    const auto at = [&](std::ptrdiff_t i) { return static_cast<std::size_t>(i - static_cast<std::ptrdiff_t>(dropped)); };
    if (from >= 0 && from + size <= total) return &buffer[at(from)];
    float* copy = &edges[lane * window];
    for (std::ptrdiff_t i = 0; i < size; ++i) {
      std::ptrdiff_t sample = from + i;
      while (sample < 0 || sample >= total) sample = sample < 0 ? -sample - 1 : 2 * total - 1 - sample;
      copy[i] = buffer[at(sample)];
    }
    return copy;
  }

  // Computes frames [next, end).
  void compute(std::int64_t end, std::vector<float>& out) {
    while (next < end) {
      const auto count = static_cast<std::size_t>(std::min<std::int64_t>(kFrameLanes, end - next));
      std::array<const float*, kFrameLanes> lanes;
      for (std::size_t i = 0; i < kFrameLanes; ++i) {
        lanes[i] = i < count ? samples_of(next + static_cast<std::int64_t>(i), i) : lanes[0];
      }
      four_frames(lanes);
      const std::size_t bins = triangles.size(), base = out.size();
      out.resize(base + count * bins);
      for (std::size_t i = 0; i < count; ++i) {
        natural_log({energies.data() + i * bins, bins}, {out.data() + base + i * bins, bins});
      }
      next += static_cast<std::int64_t>(count);
    }
  }

  // The mel energies of four frames, [4, bins].
  void four_frames(const std::array<const float*, kFrameLanes>& lanes) {
    std::array<FrameLanes, 4> sums{};
    for (std::size_t i = 0; i < window; ++i) {
      x[i] = FrameLanes{lanes[0][i], lanes[1][i], lanes[2][i], lanes[3][i]} * options.scale;
      sums[i % 4] += x[i];
    }
    const FrameLanes mean = ((sums[0] + sums[1]) + (sums[2] + sums[3])) / static_cast<float>(window);
    FrameLanes before = x[0] - mean;
    for (std::size_t i = 0; i < window; ++i) {
      const FrameLanes centred = x[i] - mean;
      transform.set(i, (centred - before * kPreemphasis) * weights[i]);
      before = centred;
    }
    for (std::size_t i = window; i < transform.size(); ++i) transform.set(i, FrameLanes{});
    const auto power = transform.transform();
    const std::size_t bins = triangles.size();
    for (std::size_t n = 0; n < bins; ++n) {
      const FrameLanes* bin = &power[triangles[n].first];
      FrameLanes energy{};
      for (const float weight : triangles[n].weights) energy += *bin++ * weight;
      for (std::size_t i = 0; i < kFrameLanes; ++i) {
        energies[i * bins + n] = kEnergyFloor > energy[i] ? kEnergyFloor : energy[i];
      }
    }
  }

  void push(std::span<const float> samples, std::vector<float>& out) {
    buffer.insert(buffer.end(), samples.begin(), samples.end());
    pushed += samples.size();
    std::int64_t ready = next;
    const auto total = static_cast<std::ptrdiff_t>(pushed), size = static_cast<std::ptrdiff_t>(window);
    if (total - begin(next) >= size) ready = next + (total - begin(next) - size) / static_cast<std::ptrdiff_t>(shift) + 1;
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
  std::size_t window, shift;
  std::ptrdiff_t start = 0;
  std::vector<Triangle> triangles;
  std::vector<float> weights;   // of the window
  std::vector<float> edges;     // [4, window]
  std::vector<FrameLanes> x;    // [window]
  PowerTransform transform;
  std::vector<float> energies;  // [4, bins]
  std::vector<float> buffer;    // the samples from `dropped` on
  std::size_t pushed = 0, dropped = 0;
  std::int64_t next = 0;  // frame
};

Result<Fbank> Fbank::make(const FbankOptions& options) {
  const Geometry g = TRY(geometry(options));
  auto triangles = TRY(triangles_of(options, g));
  return Fbank(std::make_unique<State>(options, g, std::move(triangles)));
}

Fbank::Fbank(std::unique_ptr<State> state) : state_(std::move(state)) {}
Fbank::~Fbank() = default;
Fbank::Fbank(Fbank&&) noexcept = default;
Fbank& Fbank::operator=(Fbank&&) noexcept = default;

const FbankOptions& Fbank::options() const { return state_->options; }
std::int64_t Fbank::window_samples() const { return static_cast<std::int64_t>(state_->window); }
std::int64_t Fbank::shift_samples() const { return static_cast<std::int64_t>(state_->shift); }
std::int64_t Fbank::frames(std::int64_t samples) const { return state_->frames(samples); }

void Fbank::push(std::span<const float> samples, std::vector<float>& frames) { state_->push(samples, frames); }
void Fbank::finish(std::vector<float>& frames) { state_->finish(frames); }

Result<std::vector<float>> fbank(std::span<const float> samples, const FbankOptions& options) {
  Fbank stream = TRY(Fbank::make(options));
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
