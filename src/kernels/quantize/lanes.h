// The lanes' entry points: for the tables in lanes_*.cc only.
#pragma once

#include "kernels/quantize/norm.h"

namespace oasr::kernels {

// Compute rows [m0, m1); one file and one set of compiler flags for each instruction set.
NotFinite quantize_per_token_scalar(const QuantizePerTokenArgs& args, std::int64_t m0, std::int64_t m1);
NotFinite quantize_per_token_avx2(const QuantizePerTokenArgs& args, std::int64_t m0, std::int64_t m1);
NotFinite quantize_per_token_avx512(const QuantizePerTokenArgs& args, std::int64_t m0, std::int64_t m1);

NotFinite quantize_static_scalar(const QuantizeStaticArgs& args, std::int64_t m0, std::int64_t m1);
NotFinite quantize_static_avx2(const QuantizeStaticArgs& args, std::int64_t m0, std::int64_t m1);
NotFinite quantize_static_avx512(const QuantizeStaticArgs& args, std::int64_t m0, std::int64_t m1);

NotFinite layer_norm_quant_scalar(const LayerNormQuantArgs& args, std::int64_t m0, std::int64_t m1,
                                  float* normal);
NotFinite layer_norm_quant_avx2(const LayerNormQuantArgs& args, std::int64_t m0, std::int64_t m1,
                                float* normal);
NotFinite layer_norm_quant_avx512(const LayerNormQuantArgs& args, std::int64_t m0, std::int64_t m1,
                                  float* normal);

}  // namespace oasr::kernels
