// Times what is put into the queue of a Gpu, as replays of a CUDA graph.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "device/gpu.h"

namespace oasr::bench {

inline void check(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(status));
  std::exit(1);
}

// Microseconds of one body(i), i counting from 0: the median over replays of a graph of `calls` of them. body
// puts its work into the queue of `gpu`, and gets other memory for other i where data is not to come from the
// cache.
template <class F>
double microseconds(Gpu& gpu, int calls, F body) {
  const auto stream = static_cast<cudaStream_t>(gpu.stream());
  for (int i = 0; i < calls; ++i) body(i);  // scratch memory grows, modules are loaded
  gpu.wait();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  for (int i = 0; i < calls; ++i) body(i);
  check(cudaStreamEndCapture(stream, &graph));
  check(cudaGraphInstantiate(&exec, graph, 0));
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin));
  check(cudaEventCreate(&end));
  std::vector<float> times;
  for (int i = 0; i < 14; ++i) {
    check(cudaEventRecord(begin, stream));
    check(cudaGraphLaunch(exec, stream));
    check(cudaEventRecord(end, stream));
    check(cudaEventSynchronize(end));
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin, end));
    if (i >= 3) times.push_back(milliseconds);
  }
  check(cudaEventDestroy(begin));
  check(cudaEventDestroy(end));
  check(cudaGraphExecDestroy(exec));
  check(cudaGraphDestroy(graph));
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return 1e3 * times[times.size() / 2] / calls;
}

}  // namespace oasr::bench
