// The frames of a lane, for the files mel_lane_*.cc: all in an unnamed namespace, one copy an instruction
// set.
#pragma once

#include "features/fourier_lanes.h"
#include "features/mel_lane.h"

namespace oasr {
namespace {

constexpr float kPreemphasis = 0.97f;

// V: a vector of floats. Everything of a group of frames, as many as it has elements.
template <class V>
struct MelGroup {
  static constexpr unsigned kWidth = sizeof(V) / sizeof(float);

  const MelTask& task;
  const float* const* frames;  // [kWidth]
  V* samples;                  // [transform]: the pairs that are transformed
  V* other;                    // [transform]
  V* power;                    // [transform / 2 + 1]
  float* energies;             // [kWidth, filters]

  template <std::size_t... kLanes>
  [[gnu::always_inline]] V gather(unsigned i, std::index_sequence<kLanes...>) const {
    return V{frames[kLanes][i]...};
  }
  [[gnu::always_inline]] V gather(unsigned i) const { return gather(i, std::make_index_sequence<kWidth>()); }

  [[gnu::always_inline]] void plain() const {
    for (unsigned i = 0; i < task.window; ++i) samples[i] = gather(i) * task.window_weights[i];
  }

  [[gnu::always_inline]] void emphasised() const {
    V sums[4] = {};
    for (unsigned i = 0; i < task.window; ++i) {
      const V value = gather(i) * task.scale;
      other[i] = value;
      sums[i % 4] += value;
    }
    const V mean = ((sums[0] + sums[1]) + (sums[2] + sums[3])) / static_cast<float>(task.window);
    V before = other[0] - mean;
    for (unsigned i = 0; i < task.window; ++i) {
      const V centred = other[i] - mean;
      samples[i] = (centred - before * kPreemphasis) * task.window_weights[i];
      before = centred;
    }
  }

  [[gnu::always_inline]] void filter(float* greatest) const {
    const V floor = V{} + task.floor;
    V most = floor;
    for (unsigned n = 0; n < task.filters; ++n) {
      const MelTables::Filter span = task.spans[n];
      const V* bins = power + span.first_bin;
      const float* weights = task.filter_weights + span.first_weight;
      V energy = {};
      for (unsigned i = 0; i < span.count; ++i) energy += bins[i] * weights[i];
      most = energy > most ? energy : most;
      const V bounded = floor > energy ? floor : energy;
      for (unsigned lane = 0; lane < kWidth; ++lane) energies[lane * task.filters + n] = bounded[lane];
    }
    for (unsigned lane = 0; lane < kWidth; ++lane) greatest[lane] = most[lane];
  }

  [[gnu::always_inline]] void run(float* greatest) const {
    task.emphasised ? emphasised() : plain();
    for (unsigned i = task.window; i < task.transform; ++i) samples[i] = V{};
    power_transform(reinterpret_cast<fourier::Complex<V>*>(samples),
                    reinterpret_cast<fourier::Complex<V>*>(other), task.transform / 2, task.roots, power);
    filter(greatest);
  }
};

template <LogBase kBase>
[[gnu::always_inline]] inline void logs_of(const float* __restrict energies, std::size_t count,
                                           float* __restrict logs) {
  for (std::size_t i = 0; i < count; ++i) logs[i] = log_of<kBase>(energies[i]);
}

// MelLane::run.
template <class V>
[[gnu::always_inline]] inline void run_group(const MelTask& task, const float* const* frames,
                                             std::size_t count, float* work, float* logs, float* greatest) {
  constexpr std::size_t kWidth = MelGroup<V>::kWidth;
  const float* all[kWidth];
  for (std::size_t lane = 0; lane < kWidth; ++lane) all[lane] = frames[lane < count ? lane : 0];
  V* vectors = reinterpret_cast<V*>(work);
  float* energies = work + 3 * std::size_t{task.transform} * kWidth;
  float most[kWidth];
  MelGroup<V>{task, all, vectors, vectors + task.transform, vectors + 2 * task.transform, energies}.run(most);
  if (greatest != nullptr) {
    for (std::size_t lane = 0; lane < count; ++lane) greatest[lane] = most[lane];
  }
  if (logs == nullptr) return;
  task.log == LogBase::e ? logs_of<LogBase::e>(energies, count * task.filters, logs)
                         : logs_of<LogBase::ten>(energies, count * task.filters, logs);
}

}  // namespace
}  // namespace oasr
