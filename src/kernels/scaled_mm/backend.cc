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

Result<ScaledMMBackend> selected_scaled_mm_backend() {
  const std::string name = env(kVariable).value_or("auto");
  if (name == "auto") return ScaledMMBackend::native;
  if (const auto backend = parse_enum(scaled_mm_backend_names(), name)) return *backend;
  for (const char* other : {"mma_sync", "cublaslt"}) {
    if (name != other) continue;
    return unexpected(ErrorCode::unsupported, "'" + name + "' runs on a GPU, and this is a CPU", kVariable, kRemedy);
  }
  return unexpected(ErrorCode::invalid_argument, "'" + name + "' is not a backend of int8 products", kVariable,
                    kRemedy);
}

}  // namespace oasr::kernels
