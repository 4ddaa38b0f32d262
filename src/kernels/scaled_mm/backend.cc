#include "kernels/scaled_mm/backend.h"

#include <array>
#include <string>

#include "base/env.h"

namespace oasr::kernels {
namespace {

constexpr const char* kVariable = "OASR_SCALED_MM_BACKEND";
constexpr const char* kRemedy = "use one of: auto, native, reference";

constexpr std::array kNames = {
    EnumName<ScaledMMBackend>{ScaledMMBackend::native, "native"},
    EnumName<ScaledMMBackend>{ScaledMMBackend::reference, "reference"},
};

}  // namespace

std::span<const EnumName<ScaledMMBackend>> scaled_mm_backend_names() { return kNames; }

Result<ScaledMMBackend> selected_scaled_mm_backend(bool on_gpu) {
  const std::string name = env(kVariable).value_or("auto");
  if (name == "auto") return ScaledMMBackend::native;
  if (on_gpu && name == "reference") {
    return unexpected(ErrorCode::unsupported, "the reference runs on a CPU, and this is a GPU", kVariable,
                      "use --device cpu, or one of: auto, native");
  }
  if (const auto backend = parse_enum(scaled_mm_backend_names(), name)) return *backend;
  for (const char* other : {"mma_sync", "cublaslt"}) {
    if (name != other) continue;
    return unexpected(ErrorCode::unsupported,
                      on_gpu ? "'" + name + "' can not be chosen yet" : "'" + name + "' runs on a GPU, and this is a CPU",
                      kVariable, on_gpu ? "use one of: auto, native" : kRemedy);
  }
  return unexpected(ErrorCode::invalid_argument, "'" + name + "' is not a backend of int8 products", kVariable,
                    kRemedy);
}

}  // namespace oasr::kernels
