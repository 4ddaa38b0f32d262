// The functions that a product applies to its sums.
#pragma once

#include <cstdint>

namespace oasr::kernels {

// gelu (the erf form), swish, tanh: exact_math.h. relu: 0 > x ? 0 : x (NaN stays NaN).
enum class Activation : std::uint8_t { none, gelu, swish, relu, tanh };

// act(x), the definition.
float activate(Activation activation, float x);

}  // namespace oasr::kernels
