// When the layers of a section begin and end on a GPU.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/cuda/kernel_graph.h"
#include "device/run_observer.h"

namespace oasr {

// Marks between the kernels of a list, which are events when it starts. A layer begins and ends at a mark; two that
// follow each other share one. Not thread-safe.
class LayerClock {
 public:
  LayerClock() = default;
  ~LayerClock();
  LayerClock(const LayerClock&) = delete;
  LayerClock& operator=(const LayerClock&) = delete;

  // The kernels of `layer`, a number of the caller's, come next, the first of them as the `at`-th of the list.
  void begin(int layer, std::size_t at);
  void end(std::size_t at, std::int64_t rows, const LayerWork& work);
  // A kernel was put in.
  void count() {
    if (open_) ++open_->call.kernels;
  }
  // Whether the list that is being filled holds a part of a layer: then run() has to start it.
  bool running() const { return open_.has_value() || !marks_.empty(); }
  bool marked() const { return !marks_.empty(); }

  // Starts the kernels of the list and the marks between them, as one graph or (`graph` false) one by one.
  cudaError_t run(cudaStream_t stream, bool early, bool graph, KernelList& list);
  // Reads the times of what has started, all of which is done.
  cudaError_t settle();
  // Forgets the marks of a list that does not start.
  void drop() noexcept;
  // Hands over the times that were read; layers by their numbers.
  void tell(RunObserver& observer, std::span<const std::string> layers);

 private:
  struct Mark {
    std::size_t at;     // before this kernel of the list
    std::size_t event;  // in events_
  };
  struct Layer {
    int layer;
    std::size_t begin, end;  // in events_
    LayerCall call;
  };
  struct Section {
    std::size_t begin, end;
    std::int64_t kernels;
    double seconds;
  };
  std::size_t take_event();
  std::size_t mark(std::size_t at);
  cudaError_t start_graph(cudaStream_t stream, bool early, KernelList& list);
  cudaError_t start_one_by_one(cudaStream_t stream, bool early, KernelList& list);
  cudaError_t add_nodes(cudaGraph_t graph, bool early, KernelList& list);
  cudaError_t seconds_between(std::size_t begin, std::size_t end, double& seconds) const;

  std::vector<cudaEvent_t> events_;
  std::size_t used_ = 0;  // of events_, since the last settle()
  std::vector<Mark> marks_;
  std::optional<Layer> open_;
  std::vector<Layer> layers_, read_layers_;      // that started; whose times were read
  std::vector<Section> sections_, read_sections_;
  cudaError_t failed_ = cudaSuccess;  // to make an event
};

}  // namespace oasr
