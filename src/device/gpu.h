// A queue of work on one NVIDIA GPU. Copies and kernels of one queue run in the order in which they were put in,
// beside the processor; wait() and download() are the points where the two meet.
//
// In a build without CUDA the same names exist and open() says what to do.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/run_observer.h"

namespace oasr {

struct GpuInfo {
  int index = 0;
  std::string name;             // "NVIDIA H200"
  int major = 0, minor = 0;     // compute capability
  int multiprocessors = 0;
  std::size_t memory_bytes = 0;
  std::size_t l2_bytes = 0;
  std::size_t shared_bytes = 0;  // of shared memory, that a block may have: 99 KiB on some, 227 on others
  int clock_mhz = 0, memory_clock_mhz = 0;  // at most
};

// What this process can say about GPUs, for `oasr doctor`.
struct GpuReport {
  bool built = false;           // with CUDA
  std::string driver;           // highest CUDA version of the driver, "13.0"; empty: no driver
  std::string runtime;          // CUDA version that oasr was built with
  std::string architectures;    // that kernels were compiled for: "90a"
  std::string problem;          // why no GPU can be used; empty when there is one
  std::vector<GpuInfo> gpus;
};
GpuReport gpu_report();

// A copy or kernel failed on the GPU, or an earlier one did. The request that ran is lost, the process is not.
class GpuError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
// GPU memory that was asked for is not there.
class GpuOutOfMemory : public std::bad_alloc {
 public:
  explicit GpuOutOfMemory(std::string what) : what_(std::move(what)) {}
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  std::string what_;
};

// A kernel with its arguments, as launch() of kernels/cuda/launch.cuh gives it.
struct KernelLaunch {
  const char* name = nullptr;            // what an error says
  const void* kernel = nullptr;          // the __global__ function
  std::array<unsigned, 3> grid = {}, block = {};
  std::size_t shared_bytes = 0;          // of dynamic shared memory
  std::span<void* const> arguments;      // each of the bytes that `sizes` says; copied
  std::span<const std::size_t> sizes;
};

// How the kernels of a section follow each other.
enum class Starts {
  after,  // the one before
  early,  // their blocks take their places while the one before still runs. Good for small kernels: blocks of large
          // ones would crowd on the multiprocessors that are free first
};

// Not thread-safe. Every function but open() throws GpuError when the GPU reports a failure.
class Gpu {
 public:
  // Errors: unsupported in a build without CUDA, for a driver that is missing or too old, a card that the
  // kernels were not compiled for or that can not be used; not_found for an index beyond the last GPU.
  static Result<std::unique_ptr<Gpu>> open(int index);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const GpuInfo& info() const;
  // The cudaStream_t of the queue, for code that launches kernels.
  void* stream() const;

  // Device memory, aligned to 256 bytes, uninitialised. Any queue of the GPU may use it. Throws GpuOutOfMemory.
  std::byte* allocate(std::size_t bytes);
  void free(std::byte* memory) noexcept;
  // Bytes of the card that nobody has.
  std::size_t free_bytes() const;
  // Host memory that copies go from and to at full speed (page-locked), uninitialised. Throws std::bad_alloc.
  std::byte* allocate_host(std::size_t bytes);
  void free_host(std::byte* memory) noexcept;
  // Device memory for the kernel that is put in next; it keeps its size, so the steady state allocates
  // nothing. What an earlier kernel put there is lost.
  std::byte* scratch(std::size_t bytes);

  // From host memory, which may be changed at once afterwards.
  void upload(void* to, const void* from, std::size_t bytes);
  // To host memory; waits for all that was put in before.
  void download(void* to, const void* from, std::size_t bytes);
  // `rows` pieces of `bytes` each within the device; pieces lie `to_step` and `from_step` bytes apart.
  void copy(void* to, std::size_t to_step, const void* from, std::size_t from_step, std::size_t bytes,
            std::size_t rows);
  void copy(void* to, const void* from, std::size_t bytes) { copy(to, bytes, from, bytes, bytes, 1); }
  void zero(void* to, std::size_t bytes);
  // Waits for all that was put in.
  void wait();

  // Names the layer whose kernels come next: what they find not finite is kept under this name, and a profiler shows
  // under it (NVTX) where they are put in, up to the next layer, wait() or the end of the section. The text must stay
  // where it is.
  void at_layer(std::string_view layer);
  // The same of a layer that is to be timed (RunObserver::wants_times()): up to end_layer(). The kernels of a section
  // still start together, with marks between layers that the GPU notes the time of, but none passes a mark early, and as
  // a graph that is not kept. What is put in outside a section waits for the next section, copy or wait, too.
  void begin_timed_layer(std::string_view layer);
  void end_timed_layer(std::int64_t rows, const LayerWork& work);
  // For kernels: the device word of the current layer, where the lowest row that is not finite is kept
  // (atomicMin; kAllFinite when there is none).
  std::int32_t* not_finite_row() const;
  static constexpr std::int32_t kAllFinite = 0x7fff'ffff;
  // Tells the observer what was found, and what layers and sections took, up to the last wait() or download(), once.
  void tell(RunObserver& observer);
  // Forgets what was found, and what took how long, and was not told, and the scratch memory: a request that failed has
  // left them. Waits.
  void forget();

  // Arguments on the device, for the kernel that is put in next: those that change from launch to launch of a
  // section, which so stays the same graph, or that are too many. In a section all are copied in front of its kernels.
  const void* pass(const void* arguments, std::size_t bytes);
  // Puts a kernel in. It must call in_order() (kernels/cuda/in_order.cuh) first.
  void launch(const KernelLaunch& launch);
  // Puts in what `body` puts in. Its kernels start together at the end; those of a section that comes again with
  // the same arguments, or nearly, as a CUDA graph. A copy between them, or a wait, cuts the section: what came
  // before it starts first. Not within another section. A profiler shows the section under its name (NVTX), and
  // where it starts the kernels.
  template <class Body>
  void as_graph(Starts starts, const Body& body, const char* name = "a section") {
    begin_section(starts, name);
    try {
      body();
    } catch (...) {
      drop_section();
      throw;
    }
    end_section();
  }
  // Whether sections become graphs: not with OASR_GPU_GRAPHS=0.
  bool starts_graphs() const;
  // For code that is not ours and puts work into a stream itself: starts what was put in so far, which cuts a section
  // as a copy does, and gives the cudaStream_t. What the caller puts in there comes before what is put in next. `name`:
  // what counts(), trace() and an error know it by, as a kernel.
  void* foreign(const char* name);
  // What a higher layer keeps with this queue under a name, such as a library's handle and memory: null at first, and
  // gone before the queue is.
  std::shared_ptr<void>& attached(const std::string& name);
  // How often what was put in since open(), and its memory.
  struct Counts {
    std::int64_t kernels = 0;
    std::int64_t graphs = 0;    // starts of kernels as a graph
    std::int64_t alone = 0;     // kernels that were started one by one
    std::size_t allocated = 0;  // bytes that allocate() gave
    std::size_t kept = 0;       // bytes that came back and wait for the next who asks, which counts as free
  };
  Counts counts() const;
  // From now on the names of kernels are appended to `kernels`, in the order of their launches; null: no more.
  void trace(std::vector<std::string>* kernels);
  // Tests: the n-th launch from now on fails as a broken kernel would (0: the next one; negative: none).
  void fail_launch(int n);

 private:
  struct State;
  explicit Gpu(std::unique_ptr<State> state);
  void begin_section(Starts starts, const char* name);
  void end_section();
  void drop_section() noexcept;
  std::unique_ptr<State> state_;
};

// Gpu::as_graph(), or on the host (null) only body().
template <class Body>
void as_graph(Gpu* gpu, Starts starts, const Body& body, const char* name = "a section") {
  gpu != nullptr ? gpu->as_graph(starts, body, name) : body();
}

}  // namespace oasr
