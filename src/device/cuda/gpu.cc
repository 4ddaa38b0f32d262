#include "device/gpu.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/check.h"

namespace oasr {
namespace {

// Layers of a model that can be told apart; further ones share the last word.
constexpr int kLayers = 4096;
// Uploads go through pinned memory of this size when they fit, so that none of them waits for the queue.
constexpr std::size_t kStaging = 8 << 20;

std::string version(int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); }

[[noreturn]] void fail(cudaError_t status, const std::string& doing) {
  throw GpuError(fmt::format("the GPU failed: {}: {} ({})", doing, cudaGetErrorString(status), cudaGetErrorName(status)));
}

void check(cudaError_t status, const char* doing) {
  if (status != cudaSuccess) fail(status, doing);
}

GpuInfo info_of(int index) {
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, index), "asking for its properties");
  return {.index = index,
          .name = properties.name,
          .major = properties.major,
          .minor = properties.minor,
          .multiprocessors = properties.multiProcessorCount,
          .memory_bytes = properties.totalGlobalMem,
          .l2_bytes = static_cast<std::size_t>(properties.l2CacheSize)};
}

// The architectures of OASR_CUDA_ARCHITECTURES, "80;90a": a kernel for sm_XY runs on X.Z with Z >= Y, one for
// sm_XYa on X.Y alone.
bool compiled_for(const GpuInfo& gpu) {
  const std::string_view list = OASR_CUDA_ARCHITECTURES;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    std::string_view name = list.substr(at, end - at);
    at = end + 1;
    const bool exact = name.ends_with('a');
    if (exact) name.remove_suffix(1);
    const int number = std::stoi(std::string(name));
    if (number / 10 != gpu.major) continue;
    if (exact ? number % 10 == gpu.minor : number % 10 <= gpu.minor) return true;
  }
  return false;
}

// The number of GPUs, or why there is none.
Result<int> count_gpus() {
  int driver = 0, count = 0;
  cudaDriverGetVersion(&driver);
  if (driver == 0) {
    return unexpected(ErrorCode::unsupported, "there is no NVIDIA driver on this machine", "device cuda",
                      "install the driver, or use --device cpu");
  }
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorInsufficientDriver) {
    return unexpected(ErrorCode::unsupported,
                      "the NVIDIA driver knows CUDA " + version(driver) + ", oasr needs " + version(CUDART_VERSION),
                      "device cuda", "update the driver, or use --device cpu");
  }
  if (status != cudaSuccess || count == 0) {
    return unexpected(ErrorCode::unsupported,
                      std::string("no NVIDIA GPU can be used: ") + cudaGetErrorString(status), "device cuda",
                      "look at nvidia-smi, or use --device cpu");
  }
  return count;
}

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
  int until_failure = -1;
  std::vector<std::string>* trace = nullptr;
  bool in_range = false;           // of NVTX, which a profiler shows: the launches of a layer

  ~State() {
    if (stream != nullptr) cudaStreamSynchronize(stream);
    cudaFree(scratch);
    cudaFree(rows);
    if (stream != nullptr) cudaStreamDestroy(stream);
  }
  // The device is a choice of each thread, and a queue may be used by another one than it was made by.
  void enter() const { check(cudaSetDevice(info.index), "choosing it"); }
  void end_range() {
    if (std::exchange(in_range, false)) nvtxRangePop();
  }
  std::int32_t* found_rows() { return reinterpret_cast<std::int32_t*>(found.get()); }
};

GpuReport gpu_report() {
  GpuReport report{.built = true,
                   .driver = {},
                   .runtime = version(CUDART_VERSION),
                   .architectures = OASR_CUDA_ARCHITECTURES,
                   .problem = {},
                   .gpus = {}};
  int driver = 0;
  cudaDriverGetVersion(&driver);
  if (driver != 0) report.driver = version(driver);
  const auto count = count_gpus();
  if (!count) {
    report.problem = count.error().what;
    return report;
  }
  for (int i = 0; i < *count; ++i) report.gpus.push_back(info_of(i));
  return report;
}

Result<std::unique_ptr<Gpu>> Gpu::open(int index) {
  const int count = TRY(count_gpus());
  if (index < 0 || index >= count) {
    return unexpected(ErrorCode::not_found,
                      fmt::format("there is no GPU {}: this machine has {}", index, count), "device cuda",
                      fmt::format("use cuda:0 to cuda:{}", count - 1));
  }
  auto state = std::make_unique<State>();
  try {
    state->info = info_of(index);
    if (!compiled_for(state->info)) {
      return unexpected(ErrorCode::unsupported,
                        fmt::format("{} is an sm_{}{}, and oasr was built for {}", state->info.name,
                                    state->info.major, state->info.minor, OASR_CUDA_ARCHITECTURES),
                        "device cuda", "build with -DOASR_CUDA_ARCHITECTURES for it, or use --device cpu");
    }
    state->enter();
    check(cudaStreamCreateWithFlags(&state->stream, cudaStreamNonBlocking), "making a stream");
    state->staging = pinned(kStaging);
    state->found = pinned(kLayers * sizeof(std::int32_t));
    void* rows = nullptr;
    check(cudaMalloc(&rows, kLayers * sizeof(std::int32_t)), "reserving memory");
    state->rows = static_cast<std::int32_t*>(rows);
    std::fill_n(state->found_rows(), kLayers, kAllFinite);
    check(cudaMemcpy(state->rows, state->found.get(), kLayers * sizeof(std::int32_t), cudaMemcpyHostToDevice),
          "its first copy");
    state->layers.push_back("a layer without a name");
  } catch (const GpuError& error) {
    return unexpected(ErrorCode::unsupported, error.what(), fmt::format("device cuda:{}", index),
                      "see with nvidia-smi whether the card is free, or use --device cpu");
  }
  return std::unique_ptr<Gpu>(new Gpu(std::move(state)));
}

Gpu::Gpu(std::unique_ptr<State> state) : state_(std::move(state)) {}
Gpu::~Gpu() = default;

const GpuInfo& Gpu::info() const { return state_->info; }
void* Gpu::stream() const {
  state_->enter();
  return state_->stream;
}

std::byte* Gpu::allocate(std::size_t bytes) {
  state_->enter();
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, std::max<std::size_t>(bytes, 1));
  if (status == cudaErrorMemoryAllocation) {
    std::ignore = cudaGetLastError();
    std::size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    throw GpuOutOfMemory(fmt::format("out of GPU memory: {:.1f} MiB asked for, {:.1f} of {:.1f} MiB are free",
                                     static_cast<double>(bytes) / (1 << 20), static_cast<double>(free) / (1 << 20),
                                     static_cast<double>(total) / (1 << 20)));
  }
  check(status, "reserving memory");
  return static_cast<std::byte*>(memory);
}

void Gpu::free(std::byte* memory) noexcept { cudaFree(memory); }

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
    wait();
    cudaFree(state_->scratch);
    state_->scratch = nullptr;
    state_->scratch_bytes = 0;
    state_->scratch = allocate(bytes);
    state_->scratch_bytes = bytes;
  }
  return state_->scratch;
}

void Gpu::upload(void* to, const void* from, std::size_t bytes) {
  state_->enter();
  const std::size_t padded = (bytes + 15) / 16 * 16;
  if (padded > kStaging) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, state_->stream), "copying to it");
    check(cudaStreamSynchronize(state_->stream), "copying to it");
    state_->staged = 0;
    return;
  }
  if (state_->staged + padded > kStaging) {
    check(cudaStreamSynchronize(state_->stream), "copying to it");
    state_->staged = 0;
  }
  std::byte* staged = state_->staging.get() + state_->staged;
  state_->staged += padded;
  std::memcpy(staged, from, bytes);
  check(cudaMemcpyAsync(to, staged, bytes, cudaMemcpyHostToDevice, state_->stream), "copying to it");
}

void Gpu::download(void* to, const void* from, std::size_t bytes) {
  state_->enter();
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, state_->stream), "copying from it");
  wait();
}

void Gpu::copy(void* to, std::size_t to_step, const void* from, std::size_t from_step, std::size_t bytes,
               std::size_t rows) {
  if (bytes == 0 || rows == 0) return;
  state_->enter();
  check(cudaMemcpy2DAsync(to, to_step, from, from_step, bytes, rows, cudaMemcpyDeviceToDevice, state_->stream),
        "copying on it");
}

void Gpu::zero(void* to, std::size_t bytes) {
  state_->enter();
  if (bytes > 0) check(cudaMemsetAsync(to, 0, bytes, state_->stream), "clearing memory");
}

void Gpu::wait() {
  State& s = *state_;
  s.enter();
  s.end_range();
  const std::size_t bytes = s.layers.size() * sizeof(std::int32_t);
  check(cudaMemcpyAsync(s.found.get(), s.rows, bytes, cudaMemcpyDeviceToHost, s.stream), "copying from it");
  check(cudaStreamSynchronize(s.stream), "waiting for it");
  s.staged = 0;
  s.news = std::any_of(s.found_rows(), s.found_rows() + s.layers.size(),
                       [](std::int32_t row) { return row != kAllFinite; });
}

void Gpu::at_layer(std::string_view layer) {
  State& s = *state_;
  const auto known = s.numbers.find(layer.data());
  if (known != s.numbers.end() && s.layers[static_cast<std::size_t>(known->second)] == layer) {
    s.layer = known->second;
  } else {
    if (s.layers.size() < kLayers) s.layers.emplace_back(layer);
    s.layer = static_cast<int>(s.layers.size()) - 1;
    s.numbers[layer.data()] = s.layer;
  }
  s.end_range();
  nvtxRangePushA(s.layers[static_cast<std::size_t>(s.layer)].c_str());
  s.in_range = true;
}

std::int32_t* Gpu::not_finite_row() const { return state_->rows + state_->layer; }

void Gpu::tell(RunObserver& observer) {
  State& s = *state_;
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

void Gpu::launched(const char* kernel) {
  cudaError_t status = cudaGetLastError();
  if (state_->until_failure >= 0 && state_->until_failure-- == 0) status = cudaErrorLaunchFailure;
  if (status != cudaSuccess) fail(status, std::string("the kernel ") + kernel);
  if (state_->trace != nullptr) state_->trace->emplace_back(kernel);
}

void Gpu::trace(std::vector<std::string>* kernels) { state_->trace = kernels; }

void Gpu::fail_launch(int n) { state_->until_failure = n; }

}  // namespace oasr
