#include <array>

#include "kernels/depthwise_conv1d/lanes.h"

namespace oasr::kernels {
namespace {

constexpr std::array kLanes = {
    DepthwiseConv1dLane{.name = "scalar", .isa = Isa::scalar, .run = depthwise_conv1d_scalar},
};

}  // namespace

std::span<const DepthwiseConv1dLane> depthwise_conv1d_lanes() { return kLanes; }

}  // namespace oasr::kernels
