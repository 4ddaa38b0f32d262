// The most that one core can do in registers: the roof that the kernels are measured against.
#pragma once

namespace oasr::bench {

// Runs 24 · rounds vector fma with enough independent chains. Returns the floating-point operations.
double peak_scalar(long rounds);
double peak_avx2(long rounds);
double peak_avx512(long rounds);

// The loop, for a vector type of the kernels. `keep` defeats the optimiser.
template <class S>
double peak_loop(long rounds, float* keep) {
  constexpr int kChains = 12;
  typename S::V sums[kChains];
  for (int c = 0; c < kChains; ++c) sums[c] = S::set(1.0f + static_cast<float>(c));  // else they merge
  const auto a = S::set(0.999f), b = S::set(1e-3f);
  for (long i = 0; i < 2 * rounds; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) sums[c] = S::fma(sums[c], a, b);
  }
  for (int c = 1; c < kChains; ++c) sums[0] = S::add(sums[0], sums[c]);  // every chain is needed
  S::store(keep, sums[0]);
  return 2.0 * 2.0 * kChains * S::kWidth * static_cast<double>(rounds);
}

}  // namespace oasr::bench
