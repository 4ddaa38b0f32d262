#include "api/device.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/log.h"
#include "device/driver.h"
#include "device/gpu_graphs.h"
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

// auto without a GPU, though one was to be expected.
Device processor_because(const Error& error) {
  log(LogLevel::warning, "the processor is used: " + error.message());
  return {.gpu = nullptr, .optional = false, .no_gpu_because = error.what};
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
    auto served = load::check_arithmetic(*parsed, false);
    const auto driver = device == "auto" ? unusable_driver() : std::nullopt;
    if (!served && driver) {
      served.error().what += ": " + driver->what;
      served.error().remedy = "mend the driver, oasr doctor says how, or use --arithmetic float32";
    }
    TRY(std::move(served));
  }
  return *parsed;
}

Result<Device> open_device(const std::string& device) {
  TRY(gpu_graphs());
  if (device == "cpu") return Device{};
  if (device != "auto") {
    const int index = TRY(gpu_index(device));
    auto gpu = TRY(Gpu::open(index));
    return Device{.gpu = std::move(gpu), .optional = false, .no_gpu_because = {}};
  }
  if (gpu_report().gpus.empty()) {
    const auto driver = unusable_driver();
    return driver ? processor_because(*driver) : Device{};
  }
  auto gpu = Gpu::open(0);
  if (!gpu) return processor_because(gpu.error());
  return Device{.gpu = std::move(*gpu), .optional = true, .no_gpu_because = {}};
}

}  // namespace oasr
