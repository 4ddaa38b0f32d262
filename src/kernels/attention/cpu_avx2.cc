#include "kernels/attention/append_lane.h"
#include "kernels/attention/lane.h"
#include "kernels/attention/lanes.h"
#include "kernels/simd/avx2.h"

namespace oasr::kernels {

void attention_avx2(const AttentionArgs& args, std::int64_t head, std::int64_t q0, std::int64_t q1,
                    float* scratch) {
  AttentionLaneOf<avx2::Simd>::run(args, head, q0, q1, scratch);
}

void kv_append_avx2(const AppendArgs& args, std::int64_t head) {
  KvAppendLaneOf<avx2::Simd>::run(args, head);
}

}  // namespace oasr::kernels
