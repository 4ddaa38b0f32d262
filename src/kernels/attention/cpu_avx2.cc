#include "kernels/attention/lane.h"
#include "kernels/attention/lanes.h"
#include "kernels/simd/avx2.h"

namespace oasr::kernels {

void attention_avx2(const AttentionArgs& args, std::int64_t head, std::int64_t q0, std::int64_t q1,
                    float* scratch) {
  AttentionLaneOf<avx2::Simd>::run(args, head, q0, q1, scratch);
}

}  // namespace oasr::kernels
