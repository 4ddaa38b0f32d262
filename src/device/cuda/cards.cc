#include "device/cuda/cards.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "device/cuda/check.h"

namespace oasr {
namespace {

std::string version(int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); }

}  // namespace

GpuInfo info_of(int index) {
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, index), "asking for its properties");
  int clock = 0, memory_clock = 0;  // kHz
  check(cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, index), "asking for its clock");
  check(cudaDeviceGetAttribute(&memory_clock, cudaDevAttrMemoryClockRate, index), "asking for its clock");
  return {.index = index,
          .name = properties.name,
          .major = properties.major,
          .minor = properties.minor,
          .multiprocessors = properties.multiProcessorCount,
          .memory_bytes = properties.totalGlobalMem,
          .l2_bytes = static_cast<std::size_t>(properties.l2CacheSize),
          .clock_mhz = clock / 1000,
          .memory_clock_mhz = memory_clock / 1000};
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

}  // namespace oasr
