#include "peak.h"

#include "kernels/simd/avx512.h"

namespace oasr::bench {

double peak_avx512(long rounds) {
  float keep[kernels::avx512::Simd::kWidth];
  const double operations = peak_loop<kernels::avx512::Simd>(rounds, keep);
  volatile float sink = keep[0];
  (void)sink;
  return operations;
}

}  // namespace oasr::bench
