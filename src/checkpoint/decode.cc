// Stored numbers to float32. Each decoder turns one block (or one element) into floats; loads go
// through memcpy, as files do not align their data.

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "checkpoint/state_dict.h"

namespace oasr {
namespace {

constexpr std::size_t kBlock = 32;  // elements of a ggml block

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// to_float(Half) without branches, so that the loop over a matrix vectorises: the exponent is
// rebased by a multiplication that is exact for subnormals, too.
inline float widen_half(std::uint16_t half) {
  const std::uint32_t magnitude = static_cast<std::uint32_t>(half & 0x7FFFu) << 13;
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const float rebased = std::bit_cast<float>(magnitude) * 0x1p112f;
  const std::uint32_t infinite = magnitude >= 0x0F800000u ? 0x7F800000u : 0u;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(rebased) | infinite | sign);
}

float widen_e5m2(std::uint8_t bits) { return widen_half(static_cast<std::uint16_t>(bits << 8)); }

// OCP E4M3: bias 7, no infinity, NaN is S.1111.111.
float widen_e4m3(std::uint8_t bits) {
  const int exponent = (bits >> 3) & 0xF;
  const int mantissa = bits & 0x7;
  float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                  : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  if ((bits & 0x7F) == 0x7F) magnitude = std::numeric_limits<float>::quiet_NaN();
  return std::copysign(magnitude, (bits & 0x80) ? -1.0f : 1.0f);
}

template <class T, class Convert>
void each(const StoredTensor& tensor, std::span<float> out, const Convert& convert) {
  const std::byte* at = tensor.bytes.data();
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = convert(load<T>(at + i * sizeof(T)));
}

template <class T>
void each_cast(const StoredTensor& tensor, std::span<float> out) {
  each<T>(tensor, out, [](T value) { return static_cast<float>(value); });
}

// value = code / scale of the row (CTranslate2 stores 127 / max |w|).
void ct2_rows(const StoredTensor& tensor, std::span<float> out) {
  CHECK(tensor.shape.rank() > 0 &&
            tensor.row_scale.size() == sizeof(float) * static_cast<std::size_t>(tensor.shape[0]),
        "a ct2_int8 tensor has no scale for each row");
  const auto rows = static_cast<std::size_t>(tensor.shape[0]);
  const std::size_t width = rows == 0 ? 0 : out.size() / rows;
  for (std::size_t row = 0; row < rows; ++row) {
    const float scale = load<float>(tensor.row_scale.data() + row * sizeof(float));
    const std::byte* codes = tensor.bytes.data() + row * width;
    for (std::size_t i = 0; i < width; ++i) {
      out[row * width + i] = static_cast<float>(load<std::int8_t>(codes + i)) / scale;
    }
  }
}

// ggml blocks: a scale d, for *_1 a minimum m, for q5 a word of fifth bits, then 16 bytes whose low
// nibbles are elements 0..15 and high nibbles elements 16..31. One template, as the formats differ
// only in which parts are there.
template <bool kMinimum, bool kFifthBit>
void nibble_blocks(const StoredTensor& tensor, std::span<float> out) {
  const std::byte* at = tensor.bytes.data();
  for (std::size_t block = 0; block < out.size() / kBlock; ++block) {
    const float scale = widen_half(load<std::uint16_t>(at));
    at += 2;
    float minimum = 0.0f;
    if constexpr (kMinimum) {
      minimum = widen_half(load<std::uint16_t>(at));
      at += 2;
    }
    std::uint32_t fifth = 0;
    if constexpr (kFifthBit) {
      fifth = load<std::uint32_t>(at);
      at += 4;
    }
    constexpr int kZero = kMinimum ? 0 : (kFifthBit ? 16 : 8);
    for (std::size_t i = 0; i < kBlock; ++i) {
      const auto pair = static_cast<unsigned>(at[i % 16]);
      const unsigned low = i < 16 ? pair & 0xFu : pair >> 4;
      const int code = static_cast<int>(low | (((fifth >> i) & 1u) << 4)) - kZero;
      out[block * kBlock + i] = static_cast<float>(code) * scale + minimum;
    }
    at += 16;
  }
}

void q8_blocks(const StoredTensor& tensor, std::span<float> out) {
  const std::byte* at = tensor.bytes.data();
  for (std::size_t block = 0; block < out.size() / kBlock; ++block) {
    const float scale = widen_half(load<std::uint16_t>(at));
    at += 2;
    for (std::size_t i = 0; i < kBlock; ++i) {
      out[block * kBlock + i] = static_cast<float>(load<std::int8_t>(at + i)) * scale;
    }
    at += kBlock;
  }
}

void halves(const StoredTensor& tensor, std::span<float> out) {
  each<std::uint16_t>(tensor, out, widen_half);
}

void bfloats(const StoredTensor& tensor, std::span<float> out) {
  each<std::uint16_t>(tensor, out, [](std::uint16_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  });
}

void float8_e4m3(const StoredTensor& tensor, std::span<float> out) {
  each<std::uint8_t>(tensor, out, widen_e4m3);
}

void float8_e5m2(const StoredTensor& tensor, std::span<float> out) {
  each<std::uint8_t>(tensor, out, widen_e5m2);
}

struct Decoder {
  StorageFormat format;
  void (*decode)(const StoredTensor&, std::span<float>);
};
using enum StorageFormat;
constexpr std::array kDecoders = {
    Decoder{f64, each_cast<double>},
    Decoder{f32, each_cast<float>},
    Decoder{f16, halves},
    Decoder{bf16, bfloats},
    Decoder{i64, each_cast<std::int64_t>},
    Decoder{i32, each_cast<std::int32_t>},
    Decoder{i16, each_cast<std::int16_t>},
    Decoder{i8, each_cast<std::int8_t>},
    Decoder{u64, each_cast<std::uint64_t>},
    Decoder{u32, each_cast<std::uint32_t>},
    Decoder{u16, each_cast<std::uint16_t>},
    Decoder{u8, each_cast<std::uint8_t>},
    Decoder{f8_e4m3, float8_e4m3},
    Decoder{f8_e5m2, float8_e5m2},
    Decoder{q4_0, nibble_blocks<false, false>},
    Decoder{q4_1, nibble_blocks<true, false>},
    Decoder{q5_0, nibble_blocks<false, true>},
    Decoder{q5_1, nibble_blocks<true, true>},
    Decoder{q8_0, q8_blocks},
    Decoder{ct2_int8, ct2_rows},
};

}  // namespace

Status decode_to_float(const StoredTensor& tensor, std::span<float> out) {
  CHECK(out.size() == static_cast<std::size_t>(tensor.shape.elements()),
        "the output has another size");
  const auto bytes = storage_bytes(tensor.format, tensor.shape);
  CHECK(bytes && *bytes == tensor.bytes.size(), "a stored tensor has the wrong number of bytes");
  for (const auto& decoder : kDecoders) {
    if (decoder.format == tensor.format) return decoder.decode(tensor, out), Status();
  }
  return unexpected(ErrorCode::bad_checkpoint,
                    "the tensor holds " +
                        std::string(enum_name(storage_format_names(), tensor.format)) +
                        " values, which are no numbers");
}

}  // namespace oasr
