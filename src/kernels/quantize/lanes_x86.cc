#include <array>

#include "kernels/quantize/lanes.h"

namespace oasr::kernels {
namespace {

constexpr std::array kQuantize = {
    QuantizeLane{.name = "scalar", .isa = Isa::scalar, .per_token = quantize_per_token_scalar,
                 .fixed = quantize_static_scalar},
    QuantizeLane{.name = "avx2", .isa = Isa::avx2, .per_token = quantize_per_token_avx2,
                 .fixed = quantize_static_avx2},
    QuantizeLane{.name = "avx512", .isa = Isa::avx512, .per_token = quantize_per_token_avx512,
                 .fixed = quantize_static_avx512},
};

constexpr std::array kLayerNormQuant = {
    LayerNormQuantLane{.name = "scalar", .isa = Isa::scalar, .run = layer_norm_quant_scalar},
    LayerNormQuantLane{.name = "avx2", .isa = Isa::avx2, .run = layer_norm_quant_avx2},
    LayerNormQuantLane{.name = "avx512", .isa = Isa::avx512, .run = layer_norm_quant_avx512},
};

}  // namespace

std::span<const QuantizeLane> quantize_lanes() { return kQuantize; }
std::span<const LayerNormQuantLane> layer_norm_quant_lanes() { return kLayerNormQuant; }

}  // namespace oasr::kernels
