#include <array>

#include "kernels/linear/lanes.h"

namespace oasr::kernels {
namespace {

constexpr std::array kLanes = {
    LinearLane{.name = "scalar", .isa = Isa::scalar, .run = linear_scalar},
};

}  // namespace

std::span<const LinearLane> linear_lanes() { return kLanes; }

}  // namespace oasr::kernels
