// The arithmetic of products and attention that are not quantized.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/enum_table.h"

namespace oasr {

// float32: the contracts of docs/numerics.md, the same bits on every device. The others are for GPUs: operands are
// rounded to 16 bits, sums are float32, and the matrix units multiply ("Mixed precision" there).
enum class Arithmetic : std::uint8_t { float32, float16, bfloat16 };

inline constexpr std::array kArithmeticNames = {
    EnumName<Arithmetic>{Arithmetic::float32, "float32"},
    EnumName<Arithmetic>{Arithmetic::float16, "float16"},
    EnumName<Arithmetic>{Arithmetic::bfloat16, "bfloat16"},
};
inline std::span<const EnumName<Arithmetic>> arithmetic_names() { return kArithmeticNames; }
inline std::string_view arithmetic_name(Arithmetic arithmetic) {
  return enum_name(arithmetic_names(), arithmetic);
}

}  // namespace oasr
