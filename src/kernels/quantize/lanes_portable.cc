#include <array>

#include "kernels/quantize/lanes.h"

namespace oasr::kernels {
namespace {

constexpr std::array kQuantize = {
    QuantizeLane{.name = "scalar", .isa = Isa::scalar, .per_token = quantize_per_token_scalar,
                 .fixed = quantize_static_scalar},
};

constexpr std::array kLayerNormQuant = {
    LayerNormQuantLane{.name = "scalar", .isa = Isa::scalar, .run = layer_norm_quant_scalar},
};

}  // namespace

std::span<const QuantizeLane> quantize_lanes() { return kQuantize; }
std::span<const LayerNormQuantLane> layer_norm_quant_lanes() { return kLayerNormQuant; }

}  // namespace oasr::kernels
