#include "kernels/activate/lane.h"
#include "kernels/activate/lanes.h"
#include "kernels/simd/avx2.h"

namespace oasr::kernels {

void activate_rows_avx2(const ActivateRowsArgs& args, std::int64_t m0, std::int64_t m1) {
  ActivateLaneOf<avx2::Simd>::activate_rows(args, m0, m1);
}

void glu_avx2(const GluArgs& args, std::int64_t m0, std::int64_t m1) {
  ActivateLaneOf<avx2::Simd>::glu(args, m0, m1);
}

}  // namespace oasr::kernels
