#include "tensor/dtype.h"

#include <array>
#include <bit>

namespace oasr {
namespace {

constexpr std::array kNames = {
    EnumName<DType>{DType::f64, "float64"}, EnumName<DType>{DType::f32, "float32"},
    EnumName<DType>{DType::f16, "float16"}, EnumName<DType>{DType::bf16, "bfloat16"},
    EnumName<DType>{DType::i64, "int64"},   EnumName<DType>{DType::i32, "int32"},
    EnumName<DType>{DType::i16, "int16"},   EnumName<DType>{DType::i8, "int8"},
    EnumName<DType>{DType::u64, "uint64"},  EnumName<DType>{DType::u32, "uint32"},
    EnumName<DType>{DType::u16, "uint16"},  EnumName<DType>{DType::u8, "uint8"},
    EnumName<DType>{DType::boolean, "bool"},
};

}  // namespace

std::span<const EnumName<DType>> dtype_names() { return kNames; }

std::string_view dtype_name(DType dtype) { return enum_name(dtype_names(), dtype); }

std::size_t dtype_size(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64:
    case DType::u64: return 8;
    case DType::f32:
    case DType::i32:
    case DType::u32: return 4;
    case DType::f16:
    case DType::bf16:
    case DType::i16:
    case DType::u16: return 2;
    case DType::i8:
    case DType::u8:
    case DType::boolean: return 1;
  }
  CHECK(false, "a dtype without a size");
}

float to_float(Half value) {
  const std::uint32_t sign = (value.bits & 0x8000u) << 16;
  const std::uint32_t exponent = (value.bits >> 10) & 0x1Fu;
  const std::uint32_t mantissa = value.bits & 0x3FFu;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000u | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;  // subnormal: exact in float
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

float to_float(BFloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

Half to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) {
    return {static_cast<std::uint16_t>(sign | 0x7E00u | ((magnitude >> 13) & 0x1FFu))};
  }
  if (magnitude >= 0x477FF000u) return {static_cast<std::uint16_t>(sign | 0x7C00u)};  // ≥ 65520
  if (magnitude < 0x38800000u) {  // below 2^-14: adding 0.5 makes the FPU round at 2^-24
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return {static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000u))};
  }
  const std::uint32_t odd = (magnitude >> 13) & 1u;
  return {static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u + 0xFFFu + odd) >> 13))};
}

BFloat16 to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) {
    return {static_cast<std::uint16_t>((bits >> 16) | 0x40u)};
  }
  const std::uint32_t odd = (bits >> 16) & 1u;
  return {static_cast<std::uint16_t>((bits + 0x7FFFu + odd) >> 16)};
}

}  // namespace oasr
