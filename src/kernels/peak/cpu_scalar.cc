#include "kernels/peak/float_loop.h"
#include "kernels/peak/lanes.h"
#include "kernels/simd/scalar.h"

namespace oasr::kernels {

double int8_peak_scalar(long rounds) {
  constexpr int kChains = 16;
  std::int32_t sums[kChains] = {};
  std::int16_t weights[kChains];
  for (int c = 0; c < kChains; ++c) weights[c] = static_cast<std::int16_t>(c - 8);
  std::int32_t activation = 3;
  for (long i = 0; i < rounds; ++i) {
    asm volatile("" : "+r"(activation));  // a new value every time, as far as the compiler knows
    const auto a = static_cast<std::int16_t>(activation);
    for (int c = 0; c < kChains; ++c) sums[c] += a * weights[c];
  }
  for (std::int32_t& sum : sums) asm volatile("" : "+r"(sum));  // every chain is needed
  return 2.0 * kChains * static_cast<double>(rounds);
}

double float32_peak_scalar(long rounds) { return float_peak_loop<scalar::Simd>(rounds); }

}  // namespace oasr::kernels
