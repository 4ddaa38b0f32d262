#include "kernels/peak/float_loop.h"
#include "kernels/peak/lanes.h"
#include "kernels/simd/avx512.h"

namespace oasr::kernels {

double float32_peak_avx512(long rounds) { return float_peak_loop<avx512::Simd>(rounds); }

}  // namespace oasr::kernels
