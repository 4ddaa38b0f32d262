#include <array>

#include "kernels/scaled_mm_int4/lanes.h"

namespace oasr::kernels {
namespace {

constexpr std::array kLanes = {
    Int4MMLane{
        .name = "scalar", .isa = Isa::scalar, .run = int4_mm_scalar, .run_quant = int4_mm_quant_scalar},
};

}  // namespace

std::span<const Int4MMLane> int4_mm_lanes() { return kLanes; }

}  // namespace oasr::kernels
