// What kinds of layers need, and which single layers a kernel can serve.
#pragma once

#include <span>
#include <string>

#include "quant/scheme.h"
#include "quant/selection.h"

namespace oasr::quant {

// Whether an input scale must be static. An output of a convolution sums over several input
// positions, and a scale a position would not factor out of the sum.
bool needs_static_input(QuantKind kind);

// The names of kinds, joined.
std::string kind_list(std::span<const QuantKind> kinds, std::string_view comma = ", ");

// Why no kernel of the scheme can serve the layer ("in_features 80 is not a multiple of 16"); empty if one can.
std::string why_not_served(const QuantScheme& scheme, const LayerFacts& layer);

// The scheme that a layer of a kind gets: the static variant where its input scale must be static, of the
// fallback for a format without convolutions.
Result<const QuantScheme*> scheme_for(const QuantScheme& scheme, QuantKind kind);

}  // namespace oasr::quant
