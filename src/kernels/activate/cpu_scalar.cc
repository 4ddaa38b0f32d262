#include "kernels/activate/lane.h"
#include "kernels/activate/lanes.h"
#include "kernels/simd/scalar.h"

namespace oasr::kernels {

void activate_rows_scalar(const ActivateRowsArgs& args, std::int64_t m0, std::int64_t m1) {
  ActivateLaneOf<scalar::Simd>::activate_rows(args, m0, m1);
}

void glu_scalar(const GluArgs& args, std::int64_t m0, std::int64_t m1) {
  ActivateLaneOf<scalar::Simd>::glu(args, m0, m1);
}

}  // namespace oasr::kernels
