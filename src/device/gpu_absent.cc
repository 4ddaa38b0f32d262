// The GPU of a build without CUDA: there is none.
#include "base/check.h"
#include "device/driver.h"
#include "device/gpu.h"
#include "device/gpu_timing.h"

namespace oasr {
namespace {

constexpr const char* kProblem = "oasr was built without CUDA";

[[noreturn]] void absent() {
  CHECK(false, "a GPU in a build without CUDA");
  __builtin_unreachable();
}

}  // namespace

struct Gpu::State {};

GpuReport gpu_report() {
  GpuReport report;
  report.problem = kProblem;
  return report;
}

std::optional<Error> unusable_driver() { return {}; }

Result<std::unique_ptr<Gpu>> Gpu::open(int) {
  return unexpected(ErrorCode::unsupported, kProblem, "device cuda",
                    "build it where nvcc is (cmake -DOASR_CUDA=ON), or use --device cpu");
}

Gpu::Gpu(std::unique_ptr<State>) {}
Gpu::~Gpu() = default;
const GpuInfo& Gpu::info() const { absent(); }
void* Gpu::stream() const { absent(); }
std::byte* Gpu::allocate(std::size_t) { absent(); }
void Gpu::free(std::byte*) noexcept {}
std::size_t Gpu::free_bytes() const { absent(); }
std::byte* Gpu::allocate_host(std::size_t) { absent(); }
void Gpu::free_host(std::byte*) noexcept {}
std::byte* Gpu::scratch(std::size_t) { absent(); }
void Gpu::upload(void*, const void*, std::size_t) { absent(); }
void Gpu::download(void*, const void*, std::size_t) { absent(); }
void Gpu::copy(void*, std::size_t, const void*, std::size_t, std::size_t, std::size_t) { absent(); }
void Gpu::zero(void*, std::size_t) { absent(); }
void Gpu::wait() { absent(); }
void Gpu::at_layer(std::string_view) { absent(); }
void Gpu::begin_timed_layer(std::string_view) { absent(); }
void Gpu::end_timed_layer(std::int64_t, const LayerWork&) { absent(); }
std::int32_t* Gpu::not_finite_row() const { absent(); }
void Gpu::tell(RunObserver&) { absent(); }
void Gpu::forget() { absent(); }
const void* Gpu::pass(const void*, std::size_t) { absent(); }
void Gpu::launch(const KernelLaunch&) { absent(); }
bool Gpu::starts_graphs() const { absent(); }
void* Gpu::foreign(const char*) { absent(); }
std::shared_ptr<void>& Gpu::attached(const std::string&) { absent(); }
Gpu::Counts Gpu::counts() const { absent(); }
void Gpu::begin_section(Starts, const char*) { absent(); }
void Gpu::end_section() { absent(); }
void Gpu::drop_section() noexcept {}
void Gpu::trace(std::vector<std::string>*) { absent(); }
void Gpu::fail_launch(int) { absent(); }

struct GpuReplay::State {};
GpuReplay::GpuReplay(Gpu&, int, const std::function<void(int)>&) { absent(); }
GpuReplay::~GpuReplay() = default;
GpuReplay::GpuReplay(GpuReplay&&) noexcept = default;
double GpuReplay::run() { absent(); }
double copy_bytes_per_second(Gpu&, std::size_t) { absent(); }
double mark_microseconds(Gpu&) { absent(); }

}  // namespace oasr
