#include "kernels/norm/lane.h"
#include "kernels/norm/lanes.h"
#include "kernels/simd/scalar.h"

namespace oasr::kernels {

void layer_norm_scalar(const LayerNormArgs& args, std::int64_t m0, std::int64_t m1) {
  LayerNormLaneOf<scalar::Simd>::run(args, m0, m1);
}

}  // namespace oasr::kernels
