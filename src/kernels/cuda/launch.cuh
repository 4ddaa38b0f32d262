// Putting kernels into the queue of a Gpu.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "base/check.h"
#include "device/gpu.h"

namespace oasr::kernels::cuda {

struct Grid {
  std::int64_t x = 1, y = 1, z = 1;  // blocks; a launch of none is left out
};

// `name` is what an error says. shared_bytes: of dynamic shared memory; where it may be more than 48 KiB
// together with up to 16 KiB of static memory, the kernel's limit is raised.
template <class... Parameters, class... Arguments>
void launch(Gpu& gpu, const char* name, void (*kernel)(Parameters...), Grid grid, dim3 threads,
            std::size_t shared_bytes, Arguments&&... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  CHECK(grid.x <= 0x7fff'ffff && grid.y <= 65'535 && grid.z <= 65'535, "a grid that a GPU takes");
  if (shared_bytes > 32 * 1024) {
    static_cast<void>(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                           cudaFuncAttributeMaxDynamicSharedMemorySize,
                                           static_cast<int>(shared_bytes)));
  }
  const dim3 blocks(static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y), static_cast<unsigned>(grid.z));
  kernel<<<blocks, threads, shared_bytes, static_cast<cudaStream_t>(gpu.stream())>>>(
      static_cast<Parameters>(arguments)...);
  gpu.launched(name);
}

inline std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace oasr::kernels::cuda
