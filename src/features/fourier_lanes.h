// Whole transforms of several frames side by side on a processor. For files that are compiled for one
// instruction set each: all is in an unnamed namespace, so that no code of one gets into another.
#pragma once

#include <cstddef>
#include <utility>

#include "features/fourier.h"

namespace oasr {
namespace {

template <unsigned Radix, class V>
[[gnu::always_inline]] inline void run_pass(const fourier::Complex<V>* __restrict in,
                                            fourier::Complex<V>* __restrict out, const fourier::Pass& pass,
                                            const fourier::Twiddle* roots) {
  for (unsigned p = 0; p < pass.size / Radix; ++p) {
    for (unsigned q = 0; q < pass.stride; ++q) fourier::butterfly<Radix>(in, out, pass, p, q, roots);
  }
}

// The powers of the bins 0 to half of real signals of 2 · half samples, the pairs of `in`, which is lost, as
// is `other`, [half] too. power: [half + 1].
template <class V>
[[gnu::always_inline]] inline void power_transform(fourier::Complex<V>* in, fourier::Complex<V>* other,
                                                   unsigned half, const fourier::Twiddle* roots, V* power) {
  fourier::Pass pass{.size = half, .stride = 1, .roots = 2 * half};
  while (pass.size > 1) {
    const unsigned radix = fourier::radix_of(pass.size);
    if (radix == 4) run_pass<4>(in, other, pass, roots);
    if (radix == 5) run_pass<5>(in, other, pass, roots);
    if (radix == 2) run_pass<2>(in, other, pass, roots);
    std::swap(in, other);
    pass.size /= radix;
    pass.stride *= radix;
  }
  fourier::fold_ends(in, half, power);
  for (unsigned k = 1; k <= half / 2; ++k) fourier::fold(in, half, k, roots, power);
}

}  // namespace
}  // namespace oasr
