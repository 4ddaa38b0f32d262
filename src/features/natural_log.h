// ln() with the same bits on every processor: libm chooses its code by instruction set.
#pragma once

#include <span>

namespace oasr {

// y[i] = ln(x[i]), rounded to nearest from a value in double that is off by less than 2⁻⁴¹ of itself (or of
// one). For positive normal numbers; +infinity and NaN stay as they are.
void natural_log(std::span<const float> x, std::span<float> y);

}  // namespace oasr
