#include "device/gpu_graphs.h"

#include <string>

#include "base/env.h"

namespace oasr {
namespace {

constexpr const char* kGraphs = "OASR_GPU_GRAPHS";

}  // namespace

Result<bool> gpu_graphs() {
  const std::string value = env(kGraphs).value_or("1");
  if (value == "0" || value == "1") return value == "1";
  return unexpected(ErrorCode::invalid_argument, "'" + value + "' is neither 0 nor 1", kGraphs,
                    "unset it, or set it to 0 to start kernels one by one");
}

}  // namespace oasr
