#include "api/device.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/log.h"
#include "load/load.h"

namespace oasr {
namespace {

constexpr std::string_view kCuda = "cuda";

// The N of cuda:N, 0 of cuda.
Result<int> gpu_index(const std::string& device) {
  if (device == kCuda) return 0;
  const std::string_view number = std::string_view(device).substr(std::min(device.size(), kCuda.size() + 1));
  int index = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), index);
  if (device.starts_with("cuda:") && error == std::errc() && end == number.data() + number.size() && index >= 0) {
    return index;
  }
  return unexpected(ErrorCode::invalid_argument, "'" + device + "' is not a device", "device",
                    "use auto, cpu, cuda or cuda:N");
}

}  // namespace

Status check_device(const std::string& device) {
  if (device == "auto" || device == "cpu") return {};
  TRY(gpu_index(device));
  return {};
}

Result<Arithmetic> parse_arithmetic(const std::string& arithmetic, const std::string& device) {
  const auto parsed = parse_enum(arithmetic_names(), arithmetic);
  if (!parsed) {
    return unexpected(ErrorCode::invalid_argument, "'" + arithmetic + "' is not an arithmetic", "arithmetic",
                      "use " + enum_names(arithmetic_names()));
  }
  if (parsed == Arithmetic::float32) return *parsed;
  if (device == "cpu" || (device == "auto" && gpu_report().gpus.empty())) {
    TRY(load::check_arithmetic(*parsed, false));
  }
  return *parsed;
}

Result<Device> open_device(const std::string& device) {
  if (device == "cpu") return Device{};
  if (device != "auto") {
    const int index = TRY(gpu_index(device));
    auto gpu = TRY(Gpu::open(index));
    return Device{.gpu = std::move(gpu), .optional = false};
  }
  if (gpu_report().gpus.empty()) return Device{};
  auto gpu = Gpu::open(0);
  if (gpu) return Device{.gpu = std::move(*gpu), .optional = true};
  log(LogLevel::warning, "the processor is used: " + gpu.error().message());
  return Device{};
}

}  // namespace oasr
