#include "kernels/scaled_mm/backend.h"

#include <array>
#include <string>

#include "base/env.h"

namespace oasr::kernels {
namespace {

constexpr const char* kVariable = "OASR_SCALED_MM_BACKEND";

constexpr std::array kNames = {
    EnumName<ScaledMMBackend>{ScaledMMBackend::native, "native"},
    EnumName<ScaledMMBackend>{ScaledMMBackend::reference, "reference"},
    EnumName<ScaledMMBackend>{ScaledMMBackend::mma_sync, "mma_sync"},
    EnumName<ScaledMMBackend>{ScaledMMBackend::cublaslt, "cublaslt"},
};

// "one of: auto, native, reference"
std::string choices(bool on_gpu) {
  std::string text = "one of: auto";
  for (const auto& row : kNames) {
    if (runs_on(row.value, on_gpu)) text += ", " + std::string(row.name);
  }
  return text;
}

}  // namespace

std::span<const EnumName<ScaledMMBackend>> scaled_mm_backend_names() { return kNames; }

bool runs_on(ScaledMMBackend backend, bool gpu) {
  return backend == ScaledMMBackend::native || gpu == (backend != ScaledMMBackend::reference);
}

Result<ScaledMMBackend> selected_scaled_mm_backend(bool on_gpu) {
  const std::string name = env(kVariable).value_or("auto");
  if (name == "auto" || name == "cutlass") return ScaledMMBackend::native;
  const auto backend = parse_enum(scaled_mm_backend_names(), name);
  if (!backend) {
    return unexpected(ErrorCode::invalid_argument, "'" + name + "' is not a backend of int8 products", kVariable,
                      "use " + choices(on_gpu));
  }
  if (runs_on(*backend, on_gpu)) return *backend;
  return on_gpu ? unexpected(ErrorCode::unsupported, "the reference runs on a CPU, and this is a GPU", kVariable,
                             "use --device cpu, or " + choices(true))
                : unexpected(ErrorCode::unsupported, "'" + name + "' runs on a GPU, and this is a CPU", kVariable,
                             "use " + choices(false));
}

ScaledMMBackend scaled_mm_backend_of(Isa isa) {
  return isa == Isa::reference ? ScaledMMBackend::reference : ScaledMMBackend::native;
}

}  // namespace oasr::kernels
