// Which implementation of the int8 products layers bind to.
#pragma once

#include <cstdint>
#include <span>

#include "base/enum_table.h"
#include "base/result.h"
#include "device/cpu.h"

namespace oasr::kernels {

enum class ScaledMMBackend : std::uint8_t {
  native,     // the best: on a CPU the lane of the chosen Isa, on a GPU wgmma where it runs and else mma.sync
  reference,  // CPU: the definitions of reference.cc: slow, single-threaded, the same bits
  mma_sync,   // GPU: only the tiles of mma.sync
  cublaslt,   // GPU: NVIDIA's library multiplies, a kernel of ours does the rest. For comparison: nothing chooses it
};
std::span<const EnumName<ScaledMMBackend>> scaled_mm_backend_names();
bool runs_on(ScaledMMBackend backend, bool gpu);

// native, or what OASR_SCALED_MM_BACKEND names: auto and cutlass (native), or a backend. One of another device and
// an unknown name are errors, never ignored.
Result<ScaledMMBackend> selected_scaled_mm_backend(bool on_gpu = false);

// Of a CPU where `isa` is chosen, before any variable: native, or with Isa::reference the reference.
ScaledMMBackend scaled_mm_backend_of(Isa isa);

}  // namespace oasr::kernels
