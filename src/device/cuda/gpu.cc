#include "device/gpu.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "device/cuda/cards.h"
#include "device/cuda/check.h"
#include "device/cuda/freed_memory.h"
#include "device/cuda/kernel_graph.h"
#include "device/cuda/layer_clock.h"
#include "device/gpu_graphs.h"
#include "device/kernel_gaps.h"

namespace oasr {
namespace {

// Layers of a model that can be told apart; further ones share the last word.
constexpr int kLayers = 4096;
// Uploads go through pinned memory of this size when they fit, so that none of them waits for the queue.
constexpr std::size_t kStaging = 8 << 20;
// Memory for arguments that are passed on the device; a section that needs more is cut.
constexpr std::size_t kArguments = 1 << 20;
constexpr std::size_t kArgumentsAligned = 16;
// Dynamic shared memory that every kernel may have, beside static memory of up to 16 KiB.
constexpr std::size_t kSharedByDefault = 32 << 10;

struct FreeHost {
  void operator()(std::byte* memory) const { cudaFreeHost(memory); }
};
using Pinned = std::unique_ptr<std::byte, FreeHost>;

Pinned pinned(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMallocHost(&memory, bytes), "reserving pinned memory");
  return Pinned(static_cast<std::byte*>(memory));
}

}  // namespace

struct Gpu::State {
  GpuInfo info;
  cudaStream_t stream = nullptr;
  FreedMemory freed;
  std::byte* scratch = nullptr;
  std::size_t scratch_bytes = 0;
  Pinned staging;
  std::size_t staged = 0;          // bytes of staging that copies in the queue may still read
  std::int32_t* rows = nullptr;    // on the device: of each layer
  Pinned found;                    // what rows held at the last wait
  bool news = false;               // found has not been told
  int layer = 0;
  std::vector<std::string> layers;
  std::unordered_map<const char*, int> numbers;  // by the address of a layer's name
  std::unordered_map<const void*, std::size_t> shared_limits;  // of kernels that need more than by default
  bool can_start_early = false;    // kernels, before the ones in front of them are done
  bool early = false;              // those of this section do
  bool graphs = false;             // sections become graphs
  bool in_section = false;
  KernelList section;
  KernelGraphs kept;
  LayerClock clock;
  std::vector<std::byte> passed;   // arguments of the section's kernels, as they are to lie in
  std::byte* arguments = nullptr;  // the device's memory for them
  std::int64_t kernels = 0;        // that were put in
  std::int64_t timed_graphs = 0;   // that were started
  std::int64_t alone = 0;          // kernels that were started one by one, beside those of `kept`
  std::size_t allocated = 0;       // bytes
  cudaError_t failed_start = cudaSuccess;  // has not been told
  int until_failure = -1;
  std::vector<std::string>* trace = nullptr;
  bool in_range = false;           // of NVTX, which a profiler shows: the launches of a layer
  std::unordered_map<std::string, std::shared_ptr<void>> attached;

  ~State() {
    end_range();
    if (stream != nullptr) cudaStreamSynchronize(stream);
    freed.give(scratch);
    cudaFree(rows);
    cudaFree(arguments);
    if (stream != nullptr) cudaStreamDestroy(stream);
  }
  // Starts what a section holds so far.
  void flush() {
    start_section();
    check(std::exchange(failed_start, cudaSuccess), "starting kernels");
  }
  void start_section() noexcept {
    if (section.entries().empty() && passed.empty() && !clock.marked()) return;
    cudaError_t status = copy_passed();
    if (status != cudaSuccess) {
      clock.drop();
    } else if (clock.running()) {
      status = start_timed();
    } else if (!section.entries().empty()) {
      status = kept.run(stream, early, section);
    }
    section.clear();
    passed.clear();
    if (failed_start == cudaSuccess) failed_start = status;
  }
  cudaError_t start_timed() noexcept {
    (graphs ? timed_graphs : alone) += graphs ? 1 : std::ssize(section.entries());
    return clock.run(stream, early, graphs, section);
  }
  // Whether kernels wait for the end of a section, or for a copy or a wait.
  bool collects() const { return (in_section && graphs) || clock.running(); }
  void choose_layer(std::string_view name);
  cudaError_t copy_passed() noexcept;
  cudaError_t stage(void* to, const void* from, std::size_t bytes) noexcept;
  void allow_shared(const KernelLaunch& launch);
  // The device is a choice of each thread, and a queue may be used by another one than it was made by.
  void enter() const { check(cudaSetDevice(info.index), "choosing it"); }
  void end_range() {
    if (std::exchange(in_range, false)) nvtxRangePop();
  }
  std::int32_t* found_rows() { return reinterpret_cast<std::int32_t*>(found.get()); }
};

namespace {

Error not_free(int index, const char* what) {
  return {ErrorCode::unsupported, what, fmt::format("device cuda:{}", index),
          "see with nvidia-smi whether the card is free, or use --device cpu"};
}

}  // namespace

Result<std::unique_ptr<Gpu>> Gpu::open(int index) {
  const bool graphs = TRY(gpu_graphs());
  const int count = TRY(count_gpus());
  if (index < 0 || index >= count) {
    return unexpected(ErrorCode::not_found,
                      fmt::format("there is no GPU {}: this machine has {}", index, count), "device cuda",
                      fmt::format("use cuda:0 to cuda:{}", count - 1));
  }
  auto state = std::make_unique<State>();
  try {
    state->info = info_of(index);
    TRY(check_kernel_gaps(state->info));
    if (!compiled_for(state->info)) {
      return unexpected(ErrorCode::unsupported,
                        fmt::format("{} is an sm_{}{}, and oasr was built for {}", state->info.name,
                                    state->info.major, state->info.minor, OASR_CUDA_ARCHITECTURES),
                        "device cuda", "build with -DOASR_CUDA_ARCHITECTURES for it, or use --device cpu");
    }
    state->enter();
    // Blocks that wait for the kernel in front of theirs: from compute capability 9.0 on.
    state->can_start_early = state->info.major >= 9;
    state->graphs = graphs;
    check(cudaStreamCreateWithFlags(&state->stream, cudaStreamNonBlocking), "making a stream");
    state->staging = pinned(kStaging);
    state->found = pinned(kLayers * sizeof(std::int32_t));
    void* rows = nullptr;
    check(cudaMalloc(&rows, kLayers * sizeof(std::int32_t)), "reserving memory");
    state->rows = static_cast<std::int32_t*>(rows);
    void* arguments = nullptr;
    check(cudaMalloc(&arguments, kArguments), "reserving memory");
    state->arguments = static_cast<std::byte*>(arguments);
    state->passed.reserve(kArguments);
    std::fill_n(state->found_rows(), kLayers, kAllFinite);
    check(cudaMemcpy(state->rows, state->found.get(), kLayers * sizeof(std::int32_t), cudaMemcpyHostToDevice),
          "its first copy");
    state->layers.push_back("a layer without a name");
  } catch (const GpuError& error) {
    return unexpected(not_free(index, error.what()));
  } catch (const GpuOutOfMemory& error) {
    return unexpected(not_free(index, error.what()));
  }
  return std::unique_ptr<Gpu>(new Gpu(std::move(state)));
}

Gpu::Gpu(std::unique_ptr<State> state) : state_(std::move(state)) {}
Gpu::~Gpu() { state_->attached.clear(); }  // uses the queue to the last

const GpuInfo& Gpu::info() const { return state_->info; }
void* Gpu::stream() const {
  state_->enter();
  return state_->stream;
}

std::byte* Gpu::allocate(std::size_t bytes) {
  state_->enter();
  bytes = std::max<std::size_t>(bytes, 1);
  if (std::byte* kept = state_->freed.take(bytes)) {
    state_->allocated += bytes;
    return kept;
  }
  void* memory = nullptr;
  cudaError_t status = cudaMalloc(&memory, bytes);
  if (status == cudaErrorMemoryAllocation && state_->freed.bytes() > 0) {
    std::ignore = cudaGetLastError();
    state_->freed.release();
    status = cudaMalloc(&memory, bytes);
  }
  if (status == cudaErrorMemoryAllocation) {
    std::ignore = cudaGetLastError();
    throw GpuOutOfMemory(fmt::format("out of GPU memory: {:.1f} MiB asked for, {:.1f} of {:.1f} MiB are free",
                                     static_cast<double>(bytes) / (1 << 20),
                                     static_cast<double>(free_bytes()) / (1 << 20),
                                     static_cast<double>(state_->info.memory_bytes) / (1 << 20)));
  }
  check(status, "reserving memory");
  state_->allocated += bytes;
  state_->freed.note(static_cast<std::byte*>(memory), bytes);
  return static_cast<std::byte*>(memory);
}

// What is still in the queue runs before whatever the next owner puts in.
void Gpu::free(std::byte* memory) noexcept {
  state_->start_section();  // whose kernels may use it
  state_->freed.give(memory);
}

std::size_t Gpu::free_bytes() const {
  state_->enter();
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "asking for its memory");
  return free + state_->freed.bytes();
}

std::byte* Gpu::allocate_host(std::size_t bytes) {
  state_->enter();
  void* memory = nullptr;
  if (cudaMallocHost(&memory, std::max<std::size_t>(bytes, 1)) != cudaSuccess) {
    std::ignore = cudaGetLastError();
    throw std::bad_alloc();
  }
  return static_cast<std::byte*>(memory);
}

void Gpu::free_host(std::byte* memory) noexcept { cudaFreeHost(memory); }

std::byte* Gpu::scratch(std::size_t bytes) {
  if (state_->scratch_bytes < bytes) {
    if (state_->scratch != nullptr) free(std::exchange(state_->scratch, nullptr));
    state_->scratch_bytes = 0;
    state_->scratch = allocate(bytes);
    state_->scratch_bytes = bytes;
  }
  return state_->scratch;
}

void Gpu::upload(void* to, const void* from, std::size_t bytes) {
  state_->enter();
  state_->flush();
  const std::size_t padded = (bytes + 15) / 16 * 16;
  if (padded <= kStaging) return check(state_->stage(to, from, bytes), "copying to it");
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, state_->stream), "copying to it");
  check(cudaStreamSynchronize(state_->stream), "copying to it");
  state_->staged = 0;
}

// Copies at most kStaging bytes, which may be changed at once afterwards.
cudaError_t Gpu::State::stage(void* to, const void* from, std::size_t bytes) noexcept {
  const std::size_t padded = (bytes + 15) / 16 * 16;
  if (staged + padded > kStaging) {
    const cudaError_t status = cudaStreamSynchronize(stream);
    if (status != cudaSuccess) return status;
    staged = 0;
  }
  std::byte* place = staging.get() + staged;
  staged += padded;
  std::memcpy(place, from, bytes);
  return cudaMemcpyAsync(to, place, bytes, cudaMemcpyHostToDevice, stream);
}

cudaError_t Gpu::State::copy_passed() noexcept {
  return passed.empty() ? cudaSuccess : stage(arguments, passed.data(), passed.size());
}

void Gpu::download(void* to, const void* from, std::size_t bytes) {
  state_->enter();
  state_->flush();
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, state_->stream), "copying from it");
  wait();
}

void Gpu::copy(void* to, std::size_t to_step, const void* from, std::size_t from_step, std::size_t bytes,
               std::size_t rows) {
  if (bytes == 0 || rows == 0) return;
  state_->enter();
  state_->flush();
  check(cudaMemcpy2DAsync(to, to_step, from, from_step, bytes, rows, cudaMemcpyDeviceToDevice, state_->stream),
        "copying on it");
}

void Gpu::zero(void* to, std::size_t bytes) {
  state_->enter();
  state_->flush();
  if (bytes > 0) check(cudaMemsetAsync(to, 0, bytes, state_->stream), "clearing memory");
}

void Gpu::wait() {
  State& s = *state_;
  s.enter();
  s.flush();
  s.end_range();
  const std::size_t bytes = s.layers.size() * sizeof(std::int32_t);
  check(cudaMemcpyAsync(s.found.get(), s.rows, bytes, cudaMemcpyDeviceToHost, s.stream), "copying from it");
  check(cudaStreamSynchronize(s.stream), "waiting for it");
  s.staged = 0;
  check(s.clock.settle(), "reading the times of layers");
  s.news = std::any_of(s.found_rows(), s.found_rows() + s.layers.size(),
                       [](std::int32_t row) { return row != kAllFinite; });
}

void Gpu::State::choose_layer(std::string_view name) {
  const auto known = numbers.find(name.data());
  if (known != numbers.end() && layers[static_cast<std::size_t>(known->second)] == name) {
    layer = known->second;
    return;
  }
  // Of another model the same layers may have come before.
  auto named = std::find(layers.begin(), layers.end(), name);
  if (named == layers.end() && layers.size() < kLayers) named = layers.emplace(named, name);
  layer = static_cast<int>(std::min<std::ptrdiff_t>(named - layers.begin(), std::ssize(layers) - 1));
  numbers[name.data()] = layer;
}

void Gpu::at_layer(std::string_view layer) {
  State& s = *state_;
  s.choose_layer(layer);
  s.end_range();
  nvtxRangePushA(s.layers[static_cast<std::size_t>(s.layer)].c_str());
  s.in_range = true;
}

void Gpu::begin_timed_layer(std::string_view layer) {
  at_layer(layer);
  state_->enter();
  state_->clock.begin(state_->layer, state_->section.entries().size());
}

void Gpu::end_timed_layer(std::int64_t rows, const LayerWork& work) {
  state_->clock.end(state_->section.entries().size(), rows, work);
}

void Gpu::forget() {
  struct Nobody final : RunObserver {
    void not_finite(std::string_view, std::int64_t) override {}
  } nobody;
  wait();
  tell(nobody);
  state_->scratch_bytes = 0;
  state_->freed.give(std::exchange(state_->scratch, nullptr));
}

std::int32_t* Gpu::not_finite_row() const { return state_->rows + state_->layer; }

void Gpu::tell(RunObserver& observer) {
  State& s = *state_;
  s.clock.tell(observer, s.layers);
  if (!s.news) return;
  s.news = false;
  for (std::size_t i = 0; i < s.layers.size(); ++i) {
    const std::int32_t row = s.found_rows()[i];
    if (row != kAllFinite) observer.not_finite(s.layers[i], row);
  }
  std::fill_n(s.found_rows(), s.layers.size(), kAllFinite);
  check(cudaMemcpyAsync(s.rows, s.found.get(), s.layers.size() * sizeof(std::int32_t), cudaMemcpyHostToDevice,
                        s.stream),
        "copying to it");
  check(cudaStreamSynchronize(s.stream), "waiting for it");
}

void Gpu::State::allow_shared(const KernelLaunch& launch) {
  std::size_t& limit = shared_limits.try_emplace(launch.kernel, kSharedByDefault).first->second;
  if (launch.shared_bytes <= limit) return;
  // It is the kernel's on this card, for all queues: another one may have asked for more, which must stay.
  static std::mutex asking;
  const std::lock_guard lock(asking);
  cudaFuncAttributes attributes = {};
  check(cudaFuncGetAttributes(&attributes, launch.kernel), launch.name);
  if (launch.shared_bytes > static_cast<std::size_t>(attributes.maxDynamicSharedSizeBytes)) {
    check(cudaFuncSetAttribute(launch.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(launch.shared_bytes)),
          launch.name);
  }
  limit = launch.shared_bytes;
}

const void* Gpu::pass(const void* arguments, std::size_t bytes) {
  State& s = *state_;
  CHECK(bytes <= kArguments, "more arguments than there is memory for");
  s.enter();
  std::size_t at = (s.passed.size() + kArgumentsAligned - 1) / kArgumentsAligned * kArgumentsAligned;
  if (at + bytes > kArguments) {
    s.flush();
    at = 0;
  }
  s.passed.resize(at + bytes);
  std::memcpy(s.passed.data() + at, arguments, bytes);
  return s.arguments + at;
}

void Gpu::launch(const KernelLaunch& launch) {
  State& s = *state_;
  s.enter();
  ++s.kernels;
  if (launch.shared_bytes > kSharedByDefault) s.allow_shared(launch);
  cudaError_t status = cudaSuccess;
  if (s.until_failure >= 0 && s.until_failure-- == 0) status = cudaErrorLaunchFailure;
  s.section.add(launch);
  s.clock.count();
  if (!s.collects()) {
    ++s.alone;
    const bool early = s.in_section && s.early && s.passed.empty();  // behind a copy it waits for that
    if (status == cudaSuccess) status = s.copy_passed();
    if (status == cudaSuccess) status = put_in(s.stream, early, s.section, s.section.entries().front());
    s.section.clear();
    s.passed.clear();
  }
  if (status != cudaSuccess) fail(status, std::string("the kernel ") + launch.name);
  if (s.trace != nullptr) s.trace->emplace_back(launch.name);
}

void* Gpu::foreign(const char* name) {
  State& s = *state_;
  s.enter();
  s.flush();
  ++s.kernels;
  ++s.alone;
  s.clock.count();
  if (s.until_failure >= 0 && s.until_failure-- == 0) {
    fail(cudaErrorLaunchFailure, std::string("the kernel ") + name);
  }
  if (s.trace != nullptr) s.trace->emplace_back(name);
  return s.stream;
}

std::shared_ptr<void>& Gpu::attached(const std::string& name) { return state_->attached[name]; }

void Gpu::begin_section(Starts starts, const char* name) {
  State& s = *state_;
  CHECK(!s.in_section, "a section of kernels within another");
  s.enter();
  s.flush();  // what timed layers have left there
  s.end_range();
  nvtxRangePushA(name);
  s.in_section = true;
  s.early = starts == Starts::early && s.can_start_early;
}

void Gpu::end_section() {
  State& s = *state_;
  s.end_range();
  s.start_section();
  nvtxRangePop();
  s.in_section = s.early = false;
  s.flush();
}

void Gpu::drop_section() noexcept {
  State& s = *state_;
  s.end_range();
  nvtxRangePop();
  s.in_section = s.early = false;
  s.section.clear();
  s.passed.clear();
  s.clock.drop();
  s.failed_start = cudaSuccess;  // of a part of this section: it has failed already, and the next one has not
}

bool Gpu::starts_graphs() const { return state_->graphs; }

Gpu::Counts Gpu::counts() const {
  const State& s = *state_;
  return {.kernels = s.kernels,
          .graphs = s.kept.started() + s.timed_graphs,
          .alone = s.kept.alone() + s.alone,
          .allocated = s.allocated,
          .kept = s.freed.bytes()};
}

void Gpu::trace(std::vector<std::string>* kernels) { state_->trace = kernels; }

void Gpu::fail_launch(int n) { state_->until_failure = n; }

}  // namespace oasr
