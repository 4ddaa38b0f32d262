#include <array>

#include "kernels/scaled_mm/lanes.h"

namespace oasr::kernels {
namespace {

constexpr std::array kLanes = {
    ScaledMMLane{.name = "scalar", .isa = Isa::scalar, .run = scaled_mm_scalar,
                 .run_quant = scaled_mm_quant_scalar},
};

}  // namespace

std::span<const ScaledMMLane> scaled_mm_lanes() { return kLanes; }

}  // namespace oasr::kernels
