// From stored tensors to packed weights, a row at a time: no float32 copy of a matrix is made.
#pragma once

#include <span>
#include <string>

#include "kernels/linear/op.h"
#include "layers/parameters.h"

namespace oasr::layers {

// The rows of all matrices `names`, one after the other. 16-bit storage only if all have it.
Result<kernels::PackedWeight> pack_stacked(const Parameters& parameters,
                                           std::span<const std::string> names,
                                           const WeightOptions& options);

// A convolution weight [C_out, C_in, 3] in the layout of kernels::conv1d.
Result<kernels::PackedWeight> pack_convolution(const Parameters& parameters,
                                               const std::string& name,
                                               const WeightOptions& options);

}  // namespace oasr::layers
