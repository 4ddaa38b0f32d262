// Element types of tensors in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/enum_table.h"

namespace oasr {

enum class DType : std::uint8_t { f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8, boolean };

// "float32", "float16", … as in configuration files.
std::span<const EnumName<DType>> dtype_names();
std::string_view dtype_name(DType dtype);

// Bytes of one element.
std::size_t dtype_size(DType dtype);

// IEEE binary16 and bfloat16 as bit patterns: storage only, arithmetic is in float.
struct Half {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};

// Exact widening.
float to_float(Half value);
float to_float(BFloat16 value);

// Round to nearest, ties to even; overflow gives infinity; NaN stays NaN.
Half to_half(float value);
BFloat16 to_bfloat16(float value);

}  // namespace oasr
