#include <array>

#include "kernels/linear/lanes.h"

namespace oasr::kernels {
namespace {

constexpr std::array kLanes = {
    LinearLane{.name = "scalar", .isa = Isa::scalar, .run = linear_scalar},
    LinearLane{.name = "avx2", .isa = Isa::avx2, .run = linear_avx2},
    LinearLane{.name = "avx512", .isa = Isa::avx512, .run = linear_avx512},
};

}  // namespace

std::span<const LinearLane> linear_lanes() { return kLanes; }

}  // namespace oasr::kernels
