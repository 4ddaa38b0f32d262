#include "kernels/quantize/lane.h"
#include "kernels/quantize/lanes.h"
#include "kernels/quantize/vectors_avx512.h"

namespace oasr::kernels {

NotFinite quantize_per_token_avx512(const QuantizePerTokenArgs& args, std::int64_t m0, std::int64_t m1) {
  return QuantizeLaneOf<avx512::Int8Simd>::per_token(args, m0, m1);
}

NotFinite quantize_static_avx512(const QuantizeStaticArgs& args, std::int64_t m0, std::int64_t m1) {
  return QuantizeLaneOf<avx512::Int8Simd>::fixed(args, m0, m1);
}

NotFinite layer_norm_quant_avx512(const LayerNormQuantArgs& args, std::int64_t m0, std::int64_t m1,
                              float* normal) {
  return QuantizeLaneOf<avx512::Int8Simd>::layer_norm(args, m0, m1, normal);
}

}  // namespace oasr::kernels
