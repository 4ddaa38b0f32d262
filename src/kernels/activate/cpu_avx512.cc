#include "kernels/activate/lane.h"
#include "kernels/activate/lanes.h"
#include "kernels/simd/avx512.h"

namespace oasr::kernels {

void activate_rows_avx512(const ActivateRowsArgs& args, std::int64_t m0, std::int64_t m1) {
  ActivateLaneOf<avx512::Simd>::activate_rows(args, m0, m1);
}

void glu_avx512(const GluArgs& args, std::int64_t m0, std::int64_t m1) {
  ActivateLaneOf<avx512::Simd>::glu(args, m0, m1);
}

}  // namespace oasr::kernels
