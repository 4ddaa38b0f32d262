// The loop of fma for any vector type that the files cpu_*.cc instantiate.
#pragma once

namespace oasr::kernels {

// 24 · rounds vector fma in 12 independent chains; returns the operations.
template <class S>
double float_peak_loop(long rounds) {
  constexpr int kChains = 12;
  typename S::V sums[kChains];
  for (int c = 0; c < kChains; ++c) sums[c] = S::set(1.0f + static_cast<float>(c));  // else they merge
  const auto a = S::set(0.999f), b = S::set(1e-3f);
  for (long i = 0; i < 2 * rounds; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) sums[c] = S::fma(sums[c], a, b);
  }
  for (int c = 1; c < kChains; ++c) sums[0] = S::add(sums[0], sums[c]);
  float keep[S::kWidth];
  S::store(keep, sums[0]);
  volatile float needed = keep[0];  // else the loop goes
  (void)needed;
  return 2.0 * 2.0 * kChains * S::kWidth * static_cast<double>(rounds);
}

}  // namespace oasr::kernels
