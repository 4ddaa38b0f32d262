// Kernels of a section of a queue, which start together.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "device/gpu.h"

namespace oasr {

// Launches with copies of their arguments.
class KernelList {
 public:
  struct Entry {
    const void* kernel;
    dim3 grid, block;
    std::size_t shared_bytes;
    std::size_t first_argument;  // in places_
    std::size_t arguments;

    // Whether only what a graph can change differs.
    bool same_kernel(const Entry& other) const { return kernel == other.kernel && arguments == other.arguments; }
    bool same_shape(const Entry& other) const;
  };

  void add(const KernelLaunch& launch);
  void clear();
  std::span<const Entry> entries() const { return entries_; }
  // Pointers to the arguments of an entry, until the next call.
  void** arguments(const Entry& entry);
  // The bytes of the arguments, which lie one after the other.
  std::span<const std::byte> bytes(const Entry& entry) const;
  // Of the kernels and their order: different lists rarely have the same.
  std::uint64_t signature() const;

 private:
  struct Place {
    std::size_t offset, size;  // in bytes_
  };
  std::vector<Entry> entries_;
  std::vector<Place> places_;
  std::vector<std::byte> bytes_;
  std::vector<void*> pointers_;
};

// Puts one kernel into a stream; `early`: Starts::early.
cudaError_t put_in(cudaStream_t stream, bool early, KernelList& list, const KernelList::Entry& entry);
// As a node of a graph, until the list changes.
cudaKernelNodeParams node_parameters(KernelList& list, const KernelList::Entry& entry);

// Graphs of the lists that came more than once, nearly the same. Not thread-safe.
class KernelGraphs {
 public:
  KernelGraphs() = default;
  ~KernelGraphs();
  KernelGraphs(const KernelGraphs&) = delete;
  KernelGraphs& operator=(const KernelGraphs&) = delete;

  // Starts the kernels of a list in their order; the list is left with other ones.
  cudaError_t run(cudaStream_t stream, bool early, KernelList& list);
  std::int64_t started() const { return started_; }  // graphs
  std::int64_t alone() const { return alone_; }      // kernels that were started one by one

 private:
  struct Graph {
    std::uint64_t signature = 0, last_use = 0;
    KernelList last;  // that came
    KernelList built;  // as the executable graph has it
    std::vector<cudaGraphNode_t> nodes;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
  };
  static void destroy(Graph& graph);
  static cudaError_t build(Graph& graph, KernelList& list, bool early);
  static cudaError_t update(Graph& graph, KernelList& list);
  Graph& find(std::uint64_t signature);

  std::vector<Graph> graphs_;
  std::uint64_t uses_ = 0;
  std::int64_t started_ = 0, alone_ = 0;
};

}  // namespace oasr
