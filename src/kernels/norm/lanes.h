// The lanes' entry points: for the tables in lanes_*.cc only.
#pragma once

#include "kernels/norm/op.h"

namespace oasr::kernels {

// Compute rows [m0, m1); one file and one set of compiler flags each.
void layer_norm_scalar(const LayerNormArgs& args, std::int64_t m0, std::int64_t m1);
void layer_norm_avx2(const LayerNormArgs& args, std::int64_t m0, std::int64_t m1);
void layer_norm_avx512(const LayerNormArgs& args, std::int64_t m0, std::int64_t m1);

}  // namespace oasr::kernels
