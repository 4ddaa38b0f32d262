// Times what is put into the queue of a Gpu, as replays of a CUDA graph.
#pragma once

#include <algorithm>
#include <vector>

#include "device/gpu_timing.h"

namespace oasr::bench {

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
  std::ranges::nth_element(times, times.begin() + kRuns / 2);
  return times[kRuns / 2];
}

}  // namespace oasr::bench
