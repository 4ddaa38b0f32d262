#include <array>

#include "kernels/scaled_mm/lanes.h"

namespace oasr::kernels {
namespace {

constexpr std::array kLanes = {
    ScaledMMLane{.name = "scalar", .isa = Isa::scalar, .run = scaled_mm_scalar,
                 .run_quant = scaled_mm_quant_scalar},
    ScaledMMLane{.name = "avx2", .isa = Isa::avx2, .run = scaled_mm_avx2,
                 .run_quant = scaled_mm_quant_avx2},
    ScaledMMLane{.name = "avx_vnni", .isa = Isa::avx_vnni, .run = scaled_mm_avx_vnni,
                 .run_quant = scaled_mm_quant_avx_vnni},
    ScaledMMLane{.name = "avx512_vnni", .isa = Isa::avx512_vnni, .run = scaled_mm_avx512_vnni,
                 .run_quant = scaled_mm_quant_avx512_vnni},
    ScaledMMLane{.name = "amx", .isa = Isa::amx, .run = scaled_mm_amx, .run_quant = scaled_mm_quant_amx},
};

}  // namespace

std::span<const ScaledMMLane> scaled_mm_lanes() { return kLanes; }

}  // namespace oasr::kernels
