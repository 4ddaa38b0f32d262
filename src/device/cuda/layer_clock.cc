#include "device/cuda/layer_clock.h"

#include <utility>

namespace oasr {

LayerClock::~LayerClock() {
  for (const cudaEvent_t event : events_) cudaEventDestroy(event);
}

std::size_t LayerClock::take_event() {
  if (used_ == events_.size()) {
    cudaEvent_t event = nullptr;
    const cudaError_t status = cudaEventCreate(&event);
    if (status != cudaSuccess && failed_ == cudaSuccess) failed_ = status;
    events_.push_back(event);
  }
  return used_++;
}

std::size_t LayerClock::mark(std::size_t at) {
  if (marks_.empty() || marks_.back().at != at) marks_.push_back({at, take_event()});
  return marks_.back().event;
}

void LayerClock::begin(int layer, std::size_t at) {
  open_.reset();  // of a layer that failed
  const std::size_t event = mark(at);
  open_ = Layer{.layer = layer, .begin = event, .end = event, .call = {}};
}

void LayerClock::end(std::size_t at, std::int64_t rows, const LayerWork& work) {
  if (!open_) return;  // its section was dropped
  open_->end = mark(at);
  open_->call.rows = rows;
  open_->call.work = work;
  layers_.push_back(*open_);
  open_.reset();
}

void LayerClock::drop() noexcept {
  marks_.clear();
  open_.reset();
  layers_.clear();  // an event that was not recorded has no time
  sections_.clear();
}

cudaError_t LayerClock::run(cudaStream_t stream, bool early, bool graph, KernelList& list) {
  if (marks_.empty() || marks_.front().at != 0) marks_.insert(marks_.begin(), Mark{0, take_event()});
  mark(list.entries().size());
  cudaError_t status = std::exchange(failed_, cudaSuccess);
  if (status == cudaSuccess) status = graph ? start_graph(stream, early, list) : start_one_by_one(stream, early, list);
  sections_.push_back({.begin = marks_.front().event,
                       .end = marks_.back().event,
                       .kernels = static_cast<std::int64_t>(list.entries().size()),
                       .seconds = 0});
  marks_.clear();
  if (status != cudaSuccess) drop();
  return status;
}

cudaError_t LayerClock::start_graph(cudaStream_t stream, bool early, KernelList& list) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  cudaError_t status = cudaGraphCreate(&graph, 0);
  if (status == cudaSuccess) status = add_nodes(graph, early, list);
  if (status == cudaSuccess) status = cudaGraphInstantiate(&executable, graph, 0);
  if (status == cudaSuccess) status = cudaGraphLaunch(executable, stream);
  if (executable != nullptr) cudaGraphExecDestroy(executable);  // once it has run
  if (graph != nullptr) cudaGraphDestroy(graph);
  return status;
}

// A chain of the kernels and the marks. An edge of the early kind is from a kernel to a kernel.
cudaError_t LayerClock::add_nodes(cudaGraph_t graph, bool early, KernelList& list) {
  cudaGraphNode_t last = nullptr;
  bool last_is_kernel = false;
  const auto append = [&](cudaGraphNode_t node, bool is_kernel) {
    cudaGraphEdgeData edge = {};
    if (early && last_is_kernel && is_kernel) {
      edge.from_port = cudaGraphKernelNodePortProgrammatic;
      edge.type = cudaGraphDependencyTypeProgrammatic;
    }
    const cudaError_t status =
        last == nullptr ? cudaSuccess : cudaGraphAddDependencies(graph, &last, &node, &edge, 1);
    last = node;
    last_is_kernel = is_kernel;
    return status;
  };
  std::size_t next = 0;  // mark
  for (std::size_t i = 0; i <= list.entries().size(); ++i) {
    cudaGraphNode_t node = nullptr;
    cudaError_t status = cudaSuccess;
    if (next < marks_.size() && marks_[next].at == i) {
      status = cudaGraphAddEventRecordNode(&node, graph, nullptr, 0, events_[marks_[next++].event]);
      if (status == cudaSuccess) status = append(node, false);
    }
    if (status == cudaSuccess && i < list.entries().size()) {
      const cudaKernelNodeParams parameters = node_parameters(list, list.entries()[i]);
      status = cudaGraphAddKernelNode(&node, graph, nullptr, 0, &parameters);
      if (status == cudaSuccess) status = append(node, true);
    }
    if (status != cudaSuccess) return status;
  }
  return cudaSuccess;
}

cudaError_t LayerClock::start_one_by_one(cudaStream_t stream, bool early, KernelList& list) {
  std::size_t next = 0;
  for (std::size_t i = 0; i <= list.entries().size(); ++i) {
    cudaError_t status = cudaSuccess;
    if (next < marks_.size() && marks_[next].at == i) status = cudaEventRecord(events_[marks_[next++].event], stream);
    if (status == cudaSuccess && i < list.entries().size()) status = put_in(stream, early && i > 0, list, list.entries()[i]);
    if (status != cudaSuccess) return status;
  }
  return cudaSuccess;
}

cudaError_t LayerClock::seconds_between(std::size_t begin, std::size_t end, double& seconds) const {
  seconds = 0;
  if (begin == end) return cudaSuccess;
  float milliseconds = 0;
  const cudaError_t status = cudaEventElapsedTime(&milliseconds, events_[begin], events_[end]);
  seconds = 1e-3 * static_cast<double>(milliseconds);
  return status;
}

cudaError_t LayerClock::settle() {
  cudaError_t status = cudaSuccess;
  for (Layer& layer : layers_) {
    if (status == cudaSuccess) status = seconds_between(layer.begin, layer.end, layer.call.seconds);
  }
  for (Section& section : sections_) {
    if (status == cudaSuccess) status = seconds_between(section.begin, section.end, section.seconds);
  }
  if (status == cudaSuccess) {
    read_layers_.insert(read_layers_.end(), layers_.begin(), layers_.end());
    read_sections_.insert(read_sections_.end(), sections_.begin(), sections_.end());
  }
  layers_.clear();
  sections_.clear();
  used_ = 0;
  if (open_) {  // a layer that waits goes on
    std::swap(events_[0], events_[open_->begin]);
    open_->begin = 0;
    used_ = 1;
  }
  return status;
}

void LayerClock::tell(RunObserver& observer, std::span<const std::string> layers) {
  for (const Layer& layer : read_layers_) {
    observer.layer_time(layers[static_cast<std::size_t>(layer.layer)], layer.call);
  }
  for (const Section& section : read_sections_) observer.section_time(section.seconds, section.kernels);
  read_layers_.clear();
  read_sections_.clear();
}

}  // namespace oasr
