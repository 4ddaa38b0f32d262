#include <array>

#include "kernels/scaled_mm_int4/lanes.h"

namespace oasr::kernels {
namespace {

constexpr std::array kLanes = {
    Int4MMLane{
        .name = "scalar", .isa = Isa::scalar, .run = int4_mm_scalar, .run_quant = int4_mm_quant_scalar},
    Int4MMLane{.name = "avx2", .isa = Isa::avx2, .run = int4_mm_avx2, .run_quant = int4_mm_quant_avx2},
    Int4MMLane{.name = "avx512_vnni",
               .isa = Isa::avx512_vnni,
               .run = int4_mm_avx512_vnni,
               .run_quant = int4_mm_quant_avx512_vnni},
};

}  // namespace

std::span<const Int4MMLane> int4_mm_lanes() { return kLanes; }

}  // namespace oasr::kernels
