#include "kernels/norm/lane.h"
#include "kernels/norm/lanes.h"
#include "kernels/simd/avx512.h"

namespace oasr::kernels {

void layer_norm_avx512(const LayerNormArgs& args, std::int64_t m0, std::int64_t m1) {
  LayerNormLaneOf<avx512::Simd>::run(args, m0, m1);
}

}  // namespace oasr::kernels
