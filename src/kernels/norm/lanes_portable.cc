#include <array>

#include "kernels/norm/lanes.h"

namespace oasr::kernels {
namespace {

constexpr std::array kLanes = {
    LayerNormLane{.name = "scalar", .isa = Isa::scalar, .run = layer_norm_scalar},
};

}  // namespace

std::span<const LayerNormLane> layer_norm_lanes() { return kLanes; }

}  // namespace oasr::kernels
