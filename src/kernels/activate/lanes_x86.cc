#include <array>

#include "kernels/activate/lanes.h"

namespace oasr::kernels {
namespace {

constexpr std::array kLanes = {
    ActivateLane{.name = "scalar", .isa = Isa::scalar, .activate_rows = activate_rows_scalar, .glu = glu_scalar},
    ActivateLane{.name = "avx2", .isa = Isa::avx2, .activate_rows = activate_rows_avx2, .glu = glu_avx2},
    ActivateLane{.name = "avx512", .isa = Isa::avx512, .activate_rows = activate_rows_avx512, .glu = glu_avx512},
};

}  // namespace

std::span<const ActivateLane> activate_lanes() { return kLanes; }

}  // namespace oasr::kernels
