// Rows of int8 weights whose range is cut where that costs the least.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"

namespace oasr::calib {

struct ClippedRow {
  float scale = 0;  // w ≈ codes · scale
  float share = 1;  // of the row's amax that was kept: 1, 0.99, … 0.5
};

// Quantizes a row w [K] of a weight as kernels::quantize_per_token does, but with share · amax for amax:
// that share, the greatest among equals, with the least sum of importance[k] · (w[k] - codes[k] · scale)².
// importance [K]: E[x_k²] of the layer's input, not negative. bad_checkpoint if w is not finite.
Result<ClippedRow> clip_row(std::span<const float> w, std::span<const double> importance,
                            std::span<std::int8_t> codes);

}  // namespace oasr::calib
