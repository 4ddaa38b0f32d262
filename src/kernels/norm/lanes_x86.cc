#include <array>

#include "kernels/norm/lanes.h"

namespace oasr::kernels {
namespace {

constexpr std::array kLanes = {
    LayerNormLane{.name = "scalar", .isa = Isa::scalar, .run = layer_norm_scalar},
    LayerNormLane{.name = "avx2", .isa = Isa::avx2, .run = layer_norm_avx2},
    LayerNormLane{.name = "avx512", .isa = Isa::avx512, .run = layer_norm_avx512},
};

}  // namespace

std::span<const LayerNormLane> layer_norm_lanes() { return kLanes; }

}  // namespace oasr::kernels
