// Helpers of the tests of log mel energies: signals, recipes, and frames one at a time.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "features/fbank.h"
#include "features/fourier_lanes.h"
#include "features/log_mel.h"
#include "features/mel_frames.h"

namespace oasr {

struct NamedSamples {
  std::string name;
  std::vector<float> samples;
};

// What recordings hold, and what they should not.
inline std::vector<NamedSamples> mel_signals(std::size_t count) {
  std::mt19937 random(7);
  const auto noise = [&](float amplitude) {
    std::vector<float> out(count);
    for (float& v : out) v = amplitude * (static_cast<float>(random() >> 8) / (1 << 23) - 1.0f);
    return out;
  };
  const auto tone = [&](double hz, double amplitude) {
    std::vector<float> out(count);
    for (std::size_t i = 0; i < count; ++i)
      out[i] = static_cast<float>(amplitude *
                                  std::sin(2 * std::numbers::pi * hz * static_cast<double>(i) / 16000));
    return out;
  };
  std::vector<NamedSamples> all = {{"noise", noise(0.3f)},
                                   {"noise near the floor", noise(1e-6f)},
                                   {"noise of 16 bits", noise(0.02f)},
                                   {"silence", std::vector<float>(count)},
                                   {"negative zeros", std::vector<float>(count, -0.0f)},
                                   {"a constant", std::vector<float>(count, 0.25f)},
                                   {"a low tone", tone(40, 0.5)},
                                   {"a tone", tone(1000, 0.9)},
                                   {"half the rate", tone(7999, 1)},
                                   {"full scale", tone(440, 1e4)},
                                   {"subnormal", noise(1e-40f)},
                                   {"of subnormal powers", noise(1e-21f)},
                                   {"too large", noise(1e25f)}};
  round_to_16_bits(all[2].samples);
  for (float& v : all[9].samples) v = v > 0 ? 1.0f : -1.0f;
  NamedSamples broken{"NaN and infinity", noise(0.1f)};
  if (count > 900) {
    broken.samples[300] = std::numeric_limits<float>::quiet_NaN();
    broken.samples[count - 5] = -std::numeric_limits<float>::infinity();
  }
  all.push_back(std::move(broken));
  return all;
}

struct NamedRecipe {
  std::string name;
  MelRecipe recipe;
};

inline std::vector<NamedRecipe> mel_recipes() {
  return {
      {"whisper 80", whisper_recipe(80)},
      {"whisper 128", whisper_recipe(128)},
      {"fbank", *fbank_recipe({})},
      {"fbank of 1", *fbank_recipe({.window = FbankWindow::hamming, .scale = 1, .snip_edges = false})},
      {"fbank at 8 kHz",
       *fbank_recipe({.sample_rate = 8000, .num_mel_bins = 40, .low_hz = 100, .high_hz = -200})},
      {"fbank at 44.1 kHz",
       *fbank_recipe({.sample_rate = 44100, .num_mel_bins = 128, .frame_shift_ms = 12.5})},
      {"fbank of 512", *fbank_recipe({.num_mel_bins = 23, .frame_length_ms = 32, .frame_shift_ms = 40})},
      {"fbank of 11", *fbank_recipe({.sample_rate = 1000, .num_mel_bins = 2, .frame_length_ms = 11})},
      {"fbank of 4096", *fbank_recipe({.sample_rate = 96000, .num_mel_bins = 33, .frame_length_ms = 41})}};
}

struct MelResult {
  std::vector<float> logs, greatest;

  MelResult(const MelRecipe& recipe, std::size_t frames)
      : logs(frames * recipe.filters.size(), 77.0f), greatest(frames, 77.0f) {}
  MelOutput out() { return {.logs = logs.data(), .greatest = greatest.data()}; }
};

// A frame as the recipe says it, one operation after the other.
inline void mel_frame(const MelRecipe& recipe, const MelTables& tables, const float* x, float* logs,
                      float* greatest) {
  std::vector<fourier::Complex<float>> pairs(recipe.transform / 2), other(pairs.size());
  std::vector<float> y(recipe.window), power(recipe.transform / 2 + 1);
  float sums[4] = {};
  for (std::size_t i = 0; i < recipe.window; ++i) sums[i % 4] += x[i] * recipe.scale;
  const float mean = ((sums[0] + sums[1]) + (sums[2] + sums[3])) / static_cast<float>(recipe.window);
  for (std::size_t i = 0; i < recipe.window; ++i) {
    const float before = x[i == 0 ? 0 : i - 1] * recipe.scale - mean;
    y[i] = recipe.emphasised ? ((x[i] * recipe.scale - mean) - before * 0.97f) * recipe.weights[i]
                             : x[i] * recipe.weights[i];
    (i % 2 == 0 ? pairs[i / 2].re : pairs[i / 2].im) = y[i];
  }
  power_transform(pairs.data(), other.data(), static_cast<unsigned>(pairs.size()), tables.roots.data(),
                  power.data());
  *greatest = recipe.floor;
  for (std::size_t n = 0; n < recipe.filters.size(); ++n) {
    float energy = 0;
    const MelFilter& filter = recipe.filters[n];
    for (std::size_t i = 0; i < filter.weights.size(); ++i)
      energy += power[static_cast<std::size_t>(filter.first_bin) + i] * filter.weights[i];
    if (energy > *greatest) *greatest = energy;
    if (recipe.floor > energy) energy = recipe.floor;
    logs[n] = recipe.log == LogBase::e ? log_of<LogBase::e>(energy) : log_of<LogBase::ten>(energy);
  }
}

inline MelResult expected_mel(const MelRecipe& recipe, const float* samples, std::size_t frames) {
  const MelTables tables(recipe);
  MelResult result(recipe, frames);
  for (std::size_t t = 0; t < frames; ++t) {
    mel_frame(recipe, tables, samples + t * recipe.hop, &result.logs[t * recipe.filters.size()],
              &result.greatest[t]);
  }
  return result;
}

// A device that is the processor, with counts.
class CountingDevice final : public MelDevice {
 public:
  CountingDevice(MelRecipe recipe, std::size_t least) : frames_(recipe), least_(least) {}
  const MelRecipe& recipe() const override { return frames_.recipe(); }
  bool worth(std::size_t frames) const override { return frames >= least_; }
  void compute(const float* samples, std::size_t frames, const MelOutput& out) override {
    ++calls;
    computed += frames;
    if (broken) throw std::runtime_error("the device is broken");
    frames_.compute(samples, frames, out);
  }

  int calls = 0;
  std::size_t computed = 0;
  bool broken = false;

 private:
  MelFrames frames_;
  std::size_t least_;
};

}  // namespace oasr
