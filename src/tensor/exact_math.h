// exp, GELU, swish, sigmoid and tanh with the same bits on every lane: polynomials of FMA and IEEE
// operations, no libm.
//
// These scalar functions are the definition. The kernels' vector twins instantiate the same
// polynomials (exact_poly.h); contract tests hold them equal. Bounds: docs/numerics.md.
#pragma once

namespace oasr::exact {

// eˣ. Results below 2⁻¹²⁶ are +0 (no subnormals); above the largest float, +∞. NaN stays NaN.
float exp(float x);

// x Φ(x) = 0.5 x (1 + erf(x / √2)). gelu(+∞) = +∞, gelu(-∞) = +0. NaN stays NaN.
float gelu(float x);

// x / (1 + e⁻ˣ). +0 for x < -87.3, where the exact value is below 2⁻¹¹⁹ in size. swish(+∞) = +∞,
// swish(-∞) = +0. NaN stays NaN.
float swish(float x);

// 1 / (1 + e⁻ˣ). +0 for x < -87.3, where the exact value is below 2⁻¹²⁵. sigmoid(+∞) = 1. NaN stays NaN.
float sigmoid(float x);

// (e²ˣ - 1) / (e²ˣ + 1). tanh(±∞) = ±1, tanh(-0) = +0. NaN stays NaN.
float tanh(float x);

}  // namespace oasr::exact
