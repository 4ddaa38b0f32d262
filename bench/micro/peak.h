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
  for (auto& sum : sums) sum = S::set(1.0f);
  const auto a = S::set(0.999f), b = S::set(1e-3f);
  for (long i = 0; i < 2 * rounds; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) sums[c] = S::fma(sums[c], a, b);
  }
  for (const auto& sum : sums) S::store(keep, sum);
  return 2.0 * 2.0 * kChains * S::kWidth * static_cast<double>(rounds);
}

}  // namespace oasr::bench
