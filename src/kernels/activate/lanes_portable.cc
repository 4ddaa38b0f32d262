#include <array>

#include "kernels/activate/lanes.h"

namespace oasr::kernels {
namespace {

constexpr std::array kLanes = {
    ActivateLane{.name = "scalar", .isa = Isa::scalar, .activate_rows = activate_rows_scalar, .glu = glu_scalar},
};

}  // namespace

std::span<const ActivateLane> activate_lanes() { return kLanes; }

}  // namespace oasr::kernels
