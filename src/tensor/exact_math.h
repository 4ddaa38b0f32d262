// exp, erf, GELU with the same bits on every lane: FMA-only polynomials, no libm.
// (The kernels module owns the vector twins; contract tests hold them equal to these.)
#pragma once

namespace oasr::exact {

float exp(float x);   // stated ulp bound in docs/numerics.md
float gelu(float x);  // 0.5 x (1 + erf(x / sqrt 2))

}  // namespace oasr::exact
