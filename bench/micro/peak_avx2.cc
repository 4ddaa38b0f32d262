#include "peak.h"

#include "kernels/simd/avx2.h"

namespace oasr::bench {

double peak_avx2(long rounds) {
  float keep[kernels::avx2::Simd::kWidth];
  const double operations = peak_loop<kernels::avx2::Simd>(rounds, keep);
  volatile float sink = keep[0];
  (void)sink;
  return operations;
}

}  // namespace oasr::bench
