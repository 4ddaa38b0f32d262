#include "kernels/attention/lane.h"
#include "kernels/attention/lanes.h"
#include "kernels/simd/scalar.h"

namespace oasr::kernels {

void attention_scalar(const AttentionArgs& args, std::int64_t head, std::int64_t q0, std::int64_t q1,
                      float* scratch) {
  AttentionLaneOf<scalar::Simd>::run(args, head, q0, q1, scratch);
}

}  // namespace oasr::kernels
