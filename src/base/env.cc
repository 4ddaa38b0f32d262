#include "base/env.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

#include "base/check.h"

namespace oasr {
namespace {

constexpr std::array kVariables = {
    EnvVariable{"OASR_CACHE_DIR", "folder of downloaded models (default: ~/.cache/oasr)"},
    EnvVariable{"OASR_OFFLINE", "1 forbids every use of the network"},
    EnvVariable{"OASR_THREADS", "number of threads (default: what the cgroup quota allows)"},
    EnvVariable{"OASR_ISA", "instruction set to use: scalar, avx2, avx_vnni, avx512, avx512_vnni, amx (default: the best)"},
    EnvVariable{"OASR_LAYERS_BACKEND", "ops of a model on a CPU: auto, native (lanes), reference (their definitions)"},
    EnvVariable{"OASR_SCALED_MM_BACKEND",
                "int8 products: auto, native (a lane), reference (the definition); on a GPU also mma_sync, cublaslt"},
    EnvVariable{"OASR_QUANT_FUSION", "0 makes every quantized layer quantize its own input (same bits, slower)"},
    EnvVariable{"OASR_GPU_GRAPHS", "0 starts the kernels of a GPU one by one (same bits, slower)"},
    EnvVariable{"OASR_TEST_DATA", "folder of the full test data (tests only)"},
    EnvVariable{"OASR_TEST_WEIGHTS", "folder of real Whisper weights in every container (tests only)"},
    EnvVariable{"XDG_CACHE_HOME", "base of the cache folder"},
    EnvVariable{"HOME", "home folder, where the cache folder is by default"},
    EnvVariable{"COLUMNS", "width of the terminal"},
    EnvVariable{"NO_COLOR", "when set, no colours on the terminal"},
};

}  // namespace

std::span<const EnvVariable> env_variables() { return kVariables; }

std::optional<std::string> env(std::string_view name) {
  const bool known = std::any_of(kVariables.begin(), kVariables.end(),
                                 [&](const EnvVariable& v) { return v.name == name; });
  CHECK(known, "an environment variable that is not in the table: " + std::string(name));
  const char* value = std::getenv(std::string(name).c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

Result<bool> env_flag(std::string_view name) {
  const auto given = env(name);
  if (!given) return false;
  auto value = *given;
  std::transform(value.begin(), value.end(), value.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (value == "1" || value == "true" || value == "yes" || value == "on") return true;
  if (value == "0" || value == "false" || value == "no" || value == "off") return false;
  return unexpected(ErrorCode::invalid_argument, "'" + *given + "' is neither 1 nor 0", std::string(name),
                    "set it to 1 or 0, or unset it");
}

}  // namespace oasr
