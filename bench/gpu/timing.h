// Times of operations in the queue of a Gpu, as they are in a CUDA graph.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <vector>

#include "device/memory.h"

namespace oasr::bench {

inline void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}

// Median microseconds of one op(i), i = 0 … sets - 1 in turn: each on memory of its own, so that nothing is
// in the cache that would not be there. `count` of them make a graph, which is replayed until about 30 ms
// have passed.
inline double median_us(Gpu& gpu, int sets, const std::function<void(int)>& op) {
  const auto stream = static_cast<cudaStream_t>(gpu.stream());
  for (int i = 0; i < sets; ++i) op(i);  // scratch memory grows now
  gpu.wait();
  const int count = std::max(sets, 20 / sets * sets);
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "capture");
  for (int i = 0; i < count; ++i) op(i % sets);
  check(cudaStreamEndCapture(stream, &graph), "capture");
  check(cudaGraphInstantiate(&exec, graph, 0), "graph");
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "event");
  check(cudaEventCreate(&end), "event");
  std::vector<double> times;
  double total = 0;
  for (int i = 0; i < 3 || (total < 30'000 && i < 60); ++i) {
    check(cudaEventRecord(begin, stream), "event");
    check(cudaGraphLaunch(exec, stream), "launch");
    check(cudaEventRecord(end, stream), "event");
    check(cudaEventSynchronize(end), "wait");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin, end), "time");
    total += ms * 1000;
    if (i > 0) times.push_back(ms * 1000 / count);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

// TB/s of a copy of 1 GiB within the device, read and written bytes counted. Not of a graph, where a copy is
// slower.
inline double copy_rate(Gpu& gpu) {
  constexpr std::size_t kBytes = std::size_t{1} << 30;
  constexpr int kCopies = 10;
  Memory from(&gpu, kBytes), to(&gpu, kBytes);
  gpu.zero(from.data(), kBytes);
  const auto stream = static_cast<cudaStream_t>(gpu.stream());
  const auto copy = [&] {
    check(cudaMemcpyAsync(to.data(), from.data(), kBytes, cudaMemcpyDeviceToDevice, stream), "copy");
  };
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "event");
  check(cudaEventCreate(&end), "event");
  copy();
  check(cudaEventRecord(begin, stream), "event");
  for (int i = 0; i < kCopies; ++i) copy();
  check(cudaEventRecord(end, stream), "event");
  check(cudaEventSynchronize(end), "wait");
  float ms = 0;
  check(cudaEventElapsedTime(&ms, begin, end), "time");
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return 2.0 * kBytes * kCopies / ms / 1e9;
}

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
