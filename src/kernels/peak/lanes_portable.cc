#include <array>

#include "kernels/peak/lanes.h"
#include "kernels/peak/op.h"

namespace oasr::kernels {
namespace {

constexpr std::array kInt8 = {
    PeakLane{.name = "scalar", .isa = Isa::scalar, .rounds = 20'000, .run = int8_peak_scalar},
};

constexpr std::array kFloat32 = {
    PeakLane{.name = "scalar", .isa = Isa::scalar, .rounds = 400, .run = float32_peak_scalar},
};

}  // namespace

std::span<const PeakLane> peak_lanes(PeakKind kind) { return kind == PeakKind::int8 ? kInt8 : kFloat32; }

}  // namespace oasr::kernels
