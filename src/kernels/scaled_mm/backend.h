// Which implementation of the int8 products layers bind to.
#pragma once

#include <cstdint>
#include <span>

#include "base/enum_table.h"
#include "base/result.h"

namespace oasr::kernels {

enum class ScaledMMBackend : std::uint8_t {
  native,     // the lane of the chosen Isa
  reference,  // the definitions of reference.cc: slow, single-threaded, the same bits
};
std::span<const EnumName<ScaledMMBackend>> scaled_mm_backend_names();

// native, or what OASR_SCALED_MM_BACKEND names: auto (native), native, reference; on a GPU auto
// and native. A backend of another device and an unknown name are errors, never ignored.
Result<ScaledMMBackend> selected_scaled_mm_backend(bool on_gpu = false);

}  // namespace oasr::kernels
