// exp and GELU with the same bits on every lane: FMA-only polynomials, no libm.
//
// These scalar functions are the definition. The kernels' vector twins instantiate the same
// polynomials (exact_poly.h); contract tests hold them equal. Bounds: docs/numerics.md.
#pragma once

namespace oasr::exact {

// eˣ. Results below 2⁻¹²⁶ are +0 (no subnormals); above the largest float, +∞. NaN stays NaN.
float exp(float x);

// x Φ(x) = 0.5 x (1 + erf(x / √2)). gelu(+∞) = +∞, gelu(-∞) = +0. NaN stays NaN.
float gelu(float x);

}  // namespace oasr::exact
