#include "device/cuda/cards.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "device/cuda/check.h"
#include "device/driver.h"

namespace oasr {
namespace {

std::string version(int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); }

// What the driver answers. Either there are cards or a problem.
struct Driver {
  int version = 0;  // of CUDA, the highest that it knows; 0: none
  int cards = 0;
  std::optional<Error> problem;  // why no card can be used
  bool at_fault = false;         // and that is the driver's fault: it is there, and does not work
};

// Of a driver that says no version: it is missing or damaged, which the runtime does not tell apart.
Driver without_version() {
  const DriverLibrary library = driver_library();
  Error error{ErrorCode::unsupported, "there is no NVIDIA driver on this machine", "device cuda",
              "install the driver, or use --device cpu"};
  if (library.found) {
    error.what = "the NVIDIA driver is damaged: " +
                 (library.problem.empty() ? "its libcuda.so.1 says no version of CUDA" : library.problem);
    error.remedy = "install the driver again, or use --device cpu";
  }
  return {.version = 0, .cards = 0, .problem = std::move(error), .at_fault = library.found};
}

Driver ask_driver() {
  Driver driver;
  if (cudaDriverGetVersion(&driver.version) != cudaSuccess || driver.version == 0) return without_version();
  const cudaError_t status = cudaGetDeviceCount(&driver.cards);
  if (status == cudaSuccess && driver.cards > 0) return driver;
  driver.cards = 0;
  Error& error = driver.problem.emplace(
      Error{ErrorCode::unsupported, {}, "device cuda", "look at nvidia-smi, or use --device cpu"});
  driver.at_fault = status != cudaSuccess && status != cudaErrorNoDevice;
  if (!driver.at_fault) {
    error.what = "the NVIDIA driver sees no GPU";
    error.remedy = "look at nvidia-smi and CUDA_VISIBLE_DEVICES, or use --device cpu";
  } else if (status == cudaErrorInsufficientDriver && driver.version < CUDART_VERSION) {
    error.what = "the NVIDIA driver knows CUDA " + version(driver.version) + ", oasr needs " + version(CUDART_VERSION);
    error.remedy = "update the driver, or use --device cpu";
  } else {
    error.what = fmt::format("the NVIDIA driver can not be used: {} ({})", cudaGetErrorString(status),
                             cudaGetErrorName(status));
  }
  return driver;
}

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
          .shared_bytes = properties.sharedMemPerBlockOptin,
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
  const Driver driver = ask_driver();
  if (driver.problem) return unexpected(*driver.problem);
  return driver.cards;
}

std::optional<Error> unusable_driver() {
  const Driver driver = ask_driver();
  return driver.at_fault ? driver.problem : std::nullopt;
}

GpuReport gpu_report() {
  const Driver driver = ask_driver();
  GpuReport report{.built = true,
                   .driver = driver.version != 0 ? version(driver.version) : "",
                   .runtime = version(CUDART_VERSION),
                   .architectures = OASR_CUDA_ARCHITECTURES,
                   .problem = driver.problem ? driver.problem->what : "",
                   .gpus = {}};
  for (int i = 0; i < driver.cards; ++i) report.gpus.push_back(info_of(i));
  return report;
}

}  // namespace oasr
