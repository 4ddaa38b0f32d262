// What the tests of mixed precision take for granted about its numbers.
#pragma once

#include <cmath>
#include <cstdint>

#include "device/arithmetic.h"
#include "tensor/dtype.h"

namespace oasr::kernels {

inline constexpr Arithmetic kMixed[] = {Arithmetic::float16, Arithmetic::bfloat16};

// A number as an operand.
inline float as_operand(float value, Arithmetic arithmetic) {
  return arithmetic == Arithmetic::float16 ? to_float(to_half(value)) : to_float(to_bfloat16(value));
}
// The relative error of that, and the absolute one where the operand is subnormal.
inline double unit_roundoff(Arithmetic arithmetic) { return arithmetic == Arithmetic::float16 ? 0x1p-11 : 0x1p-8; }
inline double least_error(Arithmetic arithmetic) { return arithmetic == Arithmetic::float16 ? 0x1p-25 : 0x1p-134; }

// The error of a sum of `terms` products as mma.m16n8k16 forms it, relative to the sum of their magnitudes. A step
// adds 16 products, which are exact, and the sum so far: 17 numbers, each cut to not less than 24 bits of the
// largest of them, and a result cut to 24 bits. None of these 18 errors is more than 2⁻²³ of the magnitudes.
// A sum in pieces of 128 has no more of them: a piece starts with a step that adds to zero, 16 numbers and not 17, and
// its one addition to the pieces before is off by at most 2⁻²⁴ of the magnitudes.
inline double sum_error(std::int64_t terms) { return static_cast<double>((terms + 15) / 16) * 18 * 0x1p-23; }

}  // namespace oasr::kernels
