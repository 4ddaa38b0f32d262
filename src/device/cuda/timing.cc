#include "device/gpu_timing.h"

#include <cuda_runtime_api.h>

#include <vector>

#include "base/check.h"
#include "device/cuda/check.h"
#include "device/memory.h"

namespace oasr {
namespace {

// The time between two places of a stream.
class EventPair {
 public:
  explicit EventPair(cudaStream_t stream) : stream_(stream) {
    check(cudaEventCreate(&begin_), "making an event");
    const cudaError_t status = cudaEventCreate(&end_);
    if (status != cudaSuccess) cudaEventDestroy(begin_);
    check(status, "making an event");
  }
  ~EventPair() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  EventPair(const EventPair&) = delete;
  EventPair& operator=(const EventPair&) = delete;

  void begin() { check(cudaEventRecord(begin_, stream_), "recording an event"); }
  void end() { check(cudaEventRecord(end_, stream_), "recording an event"); }
  double wait_for_microseconds() {
    check(cudaEventSynchronize(end_), "waiting for it");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin_, end_), "reading events");
    return 1e3 * static_cast<double>(milliseconds);
  }

 private:
  cudaStream_t stream_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

}  // namespace

struct GpuReplay::State {
  State(Gpu& gpu, int calls) : stream(static_cast<cudaStream_t>(gpu.stream())), calls(calls), events(stream) {}
  ~State() {
    if (executable != nullptr) cudaGraphExecDestroy(executable);
    if (graph != nullptr) cudaGraphDestroy(graph);
  }

  // What `body` puts into the stream becomes the graph.
  void record(const std::function<void(int)>& body) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "recording a graph");
    try {
      for (int i = 0; i < calls; ++i) body(i);
    } catch (...) {
      cudaStreamEndCapture(stream, &graph);
      throw;
    }
    check(cudaStreamEndCapture(stream, &graph), "recording a graph");
    check(cudaGraphInstantiate(&executable, graph, 0), "making a graph");
  }

  cudaStream_t stream;
  int calls;
  EventPair events;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
};

GpuReplay::GpuReplay(Gpu& gpu, int calls, const std::function<void(int)>& body) {
  CHECK(calls > 0, "a graph of no calls");
  gpu.wait();
  state_ = std::make_unique<State>(gpu, calls);
  state_->record(body);
}
GpuReplay::~GpuReplay() = default;
GpuReplay::GpuReplay(GpuReplay&&) noexcept = default;

double GpuReplay::run() {
  State& s = *state_;
  s.events.begin();
  check(cudaGraphLaunch(s.executable, s.stream), "starting a graph");
  s.events.end();
  return s.events.wait_for_microseconds() / s.calls;
}

double copy_bytes_per_second(Gpu& gpu, std::size_t bytes) {
  constexpr int kCopies = 10;
  Memory from(&gpu, bytes), to(&gpu, bytes);
  gpu.zero(from.data(), bytes);
  EventPair events(static_cast<cudaStream_t>(gpu.stream()));
  gpu.copy(to.data(), from.data(), bytes);
  events.begin();
  for (int i = 0; i < kCopies; ++i) gpu.copy(to.data(), from.data(), bytes);
  events.end();
  return 2.0 * static_cast<double>(bytes) * kCopies / (1e-6 * events.wait_for_microseconds());
}

namespace {

struct Marks {
  explicit Marks(std::size_t count) : events(count) {
    for (cudaEvent_t& event : events) check(cudaEventCreate(&event), "making an event");
    check(cudaGraphCreate(&graph, 0), "making a graph");
  }
  ~Marks() {
    if (executable != nullptr) cudaGraphExecDestroy(executable);
    if (graph != nullptr) cudaGraphDestroy(graph);
    for (const cudaEvent_t event : events) {
      if (event != nullptr) cudaEventDestroy(event);
    }
  }
  Marks(const Marks&) = delete;
  Marks& operator=(const Marks&) = delete;

  std::vector<cudaEvent_t> events;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
};

}  // namespace

double mark_microseconds(Gpu& gpu) {
  constexpr int kMarks = 64, kRuns = 5;
  const auto stream = static_cast<cudaStream_t>(gpu.stream());
  Marks marks(kMarks + 1);
  cudaGraphNode_t last = nullptr;
  for (const cudaEvent_t event : marks.events) {
    cudaGraphNode_t node = nullptr;
    check(cudaGraphAddEventRecordNode(&node, marks.graph, &last, last == nullptr ? 0 : 1, event), "making a graph");
    last = node;
  }
  check(cudaGraphInstantiate(&marks.executable, marks.graph, 0), "making a graph");
  double best = 0;
  for (int i = 0; i < kRuns; ++i) {
    check(cudaGraphLaunch(marks.executable, stream), "starting a graph");
    check(cudaStreamSynchronize(stream), "waiting for it");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, marks.events.front(), marks.events.back()), "reading events");
    const double us = 1e3 * static_cast<double>(milliseconds) / kMarks;
    if (i == 0 || us < best) best = us;
  }
  return best;
}

}  // namespace oasr
