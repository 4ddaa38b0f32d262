// Times of operations in the queue of a Gpu, as they are in a CUDA graph.
#pragma once

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include "device/gpu_timing.h"
#include "device/memory.h"
#include "replay.h"

namespace oasr::bench {

// Median microseconds of one op(i), i = 0 … sets - 1 in turn: each on memory of its own, so that nothing is
// in the cache that would not be there. About 20 of them make a graph, which is replayed until 30 ms have passed.
inline double median_us(Gpu& gpu, int sets, const std::function<void(int)>& op) {
  constexpr double kMicroseconds = 30'000;
  for (int i = 0; i < sets; ++i) op(i);  // scratch memory grows now
  const int count = std::max(sets, 20 / sets * sets);
  GpuReplay replay(gpu, count, [&](int i) { op(i % sets); });
  std::vector<double> times;
  double total = 0;
  for (int i = 0; i < 3 || (total < kMicroseconds && i < 60); ++i) {
    const double us = replay.run();
    total += us * count;
    if (i > 0) times.push_back(us);
  }
  return median(std::move(times));
}

// TB/s of a copy of 1 GiB within the device, read and written bytes counted.
inline double copy_rate(Gpu& gpu) { return 1e-12 * copy_bytes_per_second(gpu, std::size_t{1} << 30); }

// Random numbers on the GPU, `sets` times `count` of them.
template <class T>
class RandomSets {
 public:
  RandomSets(Gpu& gpu, int sets, std::int64_t count, unsigned seed)
      : count_(count), memory_(&gpu, bytes(sets)) {
    std::mt19937 engine(seed);
    std::vector<T> values(static_cast<std::size_t>(count));
    for (T& value : values) {
      const auto bits = static_cast<std::int32_t>(engine());
      if constexpr (std::is_same_v<T, float>) {
        value = static_cast<float>(bits) * 0x1p-31f;
      } else {
        value = static_cast<T>(bits % 128);
      }
    }
    for (int i = 0; i < sets; ++i) gpu.upload(at(i), values.data(), values.size() * sizeof(T));
  }
  T* at(int set) { return reinterpret_cast<T*>(memory_.data()) + set * count_; }

 private:
  std::size_t bytes(int sets) const { return static_cast<std::size_t>(sets * count_) * sizeof(T); }
  std::int64_t count_;
  Memory memory_;
};

}  // namespace oasr::bench
