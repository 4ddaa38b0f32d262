#include "device/cuda/kernel_graph.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

namespace oasr {
namespace {

// Lists that are kept. A decoder has one for each way to cut its products at the numbers of rows that it sees.
constexpr std::size_t kGraphs = 64;

// Kernels of a list that may differ.
constexpr std::ptrdiff_t kFew = 8;

bool same(const dim3& a, const dim3& b) { return a.x == b.x && a.y == b.y && a.z == b.z; }

bool same(const KernelList& a, const KernelList::Entry& in_a, const KernelList& b, const KernelList::Entry& in_b) {
  return in_a.same_shape(in_b) && std::ranges::equal(a.bytes(in_a), b.bytes(in_b));
}

// Whether the same kernels run with the same arguments, but for a few.
bool few_changes(const KernelList& a, const KernelList& b) {
  const auto in_a = a.entries(), in_b = b.entries();
  if (in_a.size() != in_b.size()) return false;
  std::ptrdiff_t changes = 0;
  for (std::size_t i = 0; i < in_a.size() && changes <= kFew; ++i) {
    if (!in_a[i].same_kernel(in_b[i])) return false;
    changes += same(a, in_a[i], b, in_b[i]) ? 0 : 1;
  }
  return changes <= kFew;
}

}  // namespace

bool KernelList::Entry::same_shape(const Entry& other) const {
  return same(grid, other.grid) && same(block, other.block) && shared_bytes == other.shared_bytes;
}

void KernelList::add(const KernelLaunch& launch) {
  entries_.push_back({.kernel = launch.kernel,
                      .grid = dim3(launch.grid[0], launch.grid[1], launch.grid[2]),
                      .block = dim3(launch.block[0], launch.block[1], launch.block[2]),
                      .shared_bytes = launch.shared_bytes,
                      .first_argument = places_.size(),
                      .arguments = launch.arguments.size()});
  for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
    constexpr std::size_t kAligned = 16;
    const std::size_t offset = (bytes_.size() + kAligned - 1) / kAligned * kAligned;
    bytes_.resize(offset + launch.sizes[i]);
    std::memcpy(bytes_.data() + offset, launch.arguments[i], launch.sizes[i]);
    places_.push_back({offset, launch.sizes[i]});
  }
}

void KernelList::clear() {
  entries_.clear();
  places_.clear();
  bytes_.clear();
}

void** KernelList::arguments(const Entry& entry) {
  pointers_.clear();
  for (std::size_t i = 0; i < entry.arguments; ++i) {
    pointers_.push_back(bytes_.data() + places_[entry.first_argument + i].offset);
  }
  return pointers_.data();
}

std::span<const std::byte> KernelList::bytes(const Entry& entry) const {
  if (entry.arguments == 0) return {};
  const Place first = places_[entry.first_argument], last = places_[entry.first_argument + entry.arguments - 1];
  return std::span(bytes_).subspan(first.offset, last.offset + last.size - first.offset);
}

std::uint64_t KernelList::signature() const {
  std::uint64_t hash = 0xcbf2'9ce4'8422'2325u;  // FNV-1a
  for (const Entry& entry : entries_) {
    hash = (hash ^ reinterpret_cast<std::uintptr_t>(entry.kernel)) * 0x100'0000'01b3u;
  }
  return hash;
}

cudaError_t put_in(cudaStream_t stream, bool early, KernelList& list, const KernelList::Entry& entry) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = entry.grid;
  config.blockDim = entry.block;
  config.dynamicSmemBytes = entry.shared_bytes;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = early ? 1 : 0;
  return cudaLaunchKernelExC(&config, entry.kernel, list.arguments(entry));
}

cudaKernelNodeParams node_parameters(KernelList& list, const KernelList::Entry& entry) {
  cudaKernelNodeParams node = {};
  node.func = const_cast<void*>(entry.kernel);
  node.gridDim = entry.grid;
  node.blockDim = entry.block;
  node.sharedMemBytes = static_cast<unsigned>(entry.shared_bytes);
  node.kernelParams = list.arguments(entry);
  return node;
}

KernelGraphs::~KernelGraphs() {
  for (Graph& graph : graphs_) destroy(graph);
}

void KernelGraphs::destroy(Graph& graph) {
  if (graph.executable != nullptr) cudaGraphExecDestroy(graph.executable);
  if (graph.graph != nullptr) cudaGraphDestroy(graph.graph);
  graph.executable = nullptr;
  graph.graph = nullptr;
  graph.nodes.clear();
  graph.built.clear();
}

// Makes a chain of the list's kernels.
cudaError_t KernelGraphs::build(Graph& graph, KernelList& list, bool early) {
  cudaError_t status = cudaGraphCreate(&graph.graph, 0);
  cudaGraphEdgeData edge = {};
  if (early) {
    edge.from_port = cudaGraphKernelNodePortProgrammatic;
    edge.type = cudaGraphDependencyTypeProgrammatic;
  }
  for (const KernelList::Entry& entry : list.entries()) {
    if (status != cudaSuccess) return status;
    const cudaKernelNodeParams node = node_parameters(list, entry);
    cudaGraphNode_t added = nullptr;
    status = cudaGraphAddKernelNode(&added, graph.graph, nullptr, 0, &node);
    if (status == cudaSuccess && !graph.nodes.empty()) {
      status = cudaGraphAddDependencies(graph.graph, &graph.nodes.back(), &added, &edge, 1);
    }
    graph.nodes.push_back(added);
  }
  graph.built = list;
  return status == cudaSuccess ? cudaGraphInstantiate(&graph.executable, graph.graph, 0) : status;
}

// Tells the executable graph what is different in `list`.
cudaError_t KernelGraphs::update(Graph& graph, KernelList& list) {
  const auto before = graph.built.entries(), now = list.entries();
  bool changed = false;
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (same(list, now[i], graph.built, before[i])) continue;
    changed = true;
    const cudaKernelNodeParams node = node_parameters(list, now[i]);
    const cudaError_t status = cudaGraphExecKernelNodeSetParams(graph.executable, graph.nodes[i], &node);
    if (status != cudaSuccess) return status;
  }
  if (changed) graph.built = list;
  return cudaSuccess;
}

KernelGraphs::Graph& KernelGraphs::find(std::uint64_t signature) {
  const auto known = std::ranges::find(graphs_, signature, &Graph::signature);
  if (known != graphs_.end()) return *known;
  const bool room = graphs_.size() < kGraphs;
  Graph& graph = room ? graphs_.emplace_back() : *std::ranges::min_element(graphs_, {}, &Graph::last_use);
  destroy(graph);
  graph.last.clear();
  graph.signature = signature;
  return graph;
}

cudaError_t KernelGraphs::run(cudaStream_t stream, bool early, KernelList& list) {
  Graph& graph = find(list.signature() ^ (early ? 1 : 0));
  graph.last_use = ++uses_;
  // Telling a graph of many changes takes longer than starting the kernels, so it is worth it if they come to stay.
  const bool built = graph.executable != nullptr && few_changes(list, graph.built);
  const bool stays = built || few_changes(list, graph.last), fresh = graph.executable == nullptr;
  cudaError_t status = cudaSuccess;
  if (stays) {
    status = fresh ? build(graph, list, early) : update(graph, list);
    if (status == cudaSuccess) status = cudaGraphLaunch(graph.executable, stream);
  }
  const bool no_room = fresh && status == cudaErrorMemoryAllocation;  // a new graph takes memory of the card, kernels do not
  if (no_room) {
    status = cudaSuccess;
    std::ignore = cudaGetLastError();
    destroy(graph);
  }
  if (stays && !no_room) {
    ++started_;
  } else {
    for (const KernelList::Entry& entry : list.entries()) {
      const bool first = &entry == &list.entries().front();  // perhaps behind a copy of arguments, which it waits for
      if (status == cudaSuccess) status = put_in(stream, early && !first, list, entry);
      ++alone_;
    }
  }
  std::swap(graph.last, list);
  if (status != cudaSuccess) {  // half an update, or none that can be trusted
    destroy(graph);
    graph.last.clear();
  }
  return status;
}

}  // namespace oasr
