// The device that a facade's string names.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "device/arithmetic.h"
#include "device/gpu.h"

namespace oasr {

// auto, cpu, cuda or cuda:N.
Status check_device(const std::string& device);
// float32, float16 or bfloat16; the latter not where the device is the processor.
Result<Arithmetic> parse_arithmetic(const std::string& arithmetic, const std::string& device);

struct Device {
  std::unique_ptr<Gpu> gpu;  // null: the processor
  bool optional = false;     // nobody asked for the GPU: the processor will do as well
  std::string no_gpu_because;  // of auto: why the driver or the card that is there is not used, which was warned of
};
// auto takes the first GPU where there is one that can be used. Errors: those of Gpu::open(), and a wrong
// OASR_GPU_GRAPHS.
Result<Device> open_device(const std::string& device);

}  // namespace oasr
