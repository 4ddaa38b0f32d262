// What the CUDA runtime says of a call, as an exception.
#pragma once

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <string>
#include <tuple>
#include <utility>

#include "device/gpu.h"

namespace oasr {

[[noreturn]] inline void fail(cudaError_t status, const std::string& doing) {
  std::string what = fmt::format("the GPU failed: {}: {} ({})", doing, cudaGetErrorString(status), cudaGetErrorName(status));
  if (status != cudaErrorMemoryAllocation) throw GpuError(what);
  std::ignore = cudaGetLastError();  // nothing has happened
  throw GpuOutOfMemory(std::move(what));
}

inline void check(cudaError_t status, const char* doing) {
  if (status != cudaSuccess) fail(status, doing);
}

}  // namespace oasr
