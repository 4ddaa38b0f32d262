#include "peak.h"

#include "kernels/simd/scalar.h"

namespace oasr::bench {

double peak_scalar(long rounds) {
  float keep[kernels::scalar::Simd::kWidth];
  const double operations = peak_loop<kernels::scalar::Simd>(rounds, keep);
  volatile float sink = keep[0];
  (void)sink;
  return operations;
}

}  // namespace oasr::bench
