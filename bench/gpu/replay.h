// Times of what is put into the queue of a Gpu, as replays of a CUDA graph, and of whole calls.
#pragma once

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "device/gpu_timing.h"

namespace oasr::bench {

inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// The median of the microseconds of a call.
template <class F>
double median_call(F call) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  const auto start = Clock::now();
  for (int i = 0; i < 3 || (i < 200 && Clock::now() - start < std::chrono::milliseconds(500)); ++i) {
    const auto begin = Clock::now();
    call();
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  return median(std::move(times));
}

// Microseconds of one body(i), i counting from 0: the median over replays of a graph of `calls` of them. body
// puts its work into the queue of `gpu`, and gets other memory for other i where data is not to come from the
// cache.
template <class F>
double microseconds(Gpu& gpu, int calls, F body) {
  constexpr int kWarm = 3, kRuns = 11;
  for (int i = 0; i < calls; ++i) body(i);  // scratch memory grows, modules are loaded
  GpuReplay replay(gpu, calls, body);
  for (int i = 0; i < kWarm; ++i) replay.run();
  std::vector<double> times;
  for (int i = 0; i < kRuns; ++i) times.push_back(replay.run());
  return median(std::move(times));
}

}  // namespace oasr::bench
