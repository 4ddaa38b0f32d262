#include <array>

#include "kernels/depthwise_conv1d/lanes.h"

namespace oasr::kernels {
namespace {

constexpr std::array kLanes = {
    DepthwiseConv1dLane{.name = "scalar", .isa = Isa::scalar, .run = depthwise_conv1d_scalar},
    DepthwiseConv1dLane{.name = "avx2", .isa = Isa::avx2, .run = depthwise_conv1d_avx2},
    DepthwiseConv1dLane{.name = "avx512", .isa = Isa::avx512, .run = depthwise_conv1d_avx512},
};

}  // namespace

std::span<const DepthwiseConv1dLane> depthwise_conv1d_lanes() { return kLanes; }

}  // namespace oasr::kernels
