#include "kernels/linear/lane.h"
#include "kernels/linear/lanes.h"
#include "kernels/simd/avx2.h"

namespace oasr::kernels {

void linear_avx2(const LinearArgs& args, std::int64_t m0, std::int64_t m1, std::int64_t p0,
               std::int64_t p1) {
  LinearLaneOf<avx2::Simd>::run(args, m0, m1, p0, p1);
}

}  // namespace oasr::kernels
