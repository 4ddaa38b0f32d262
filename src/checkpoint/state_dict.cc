#include "checkpoint/state_dict.h"

#include <array>

namespace oasr {
namespace {

using enum StorageFormat;

constexpr std::array kFormatNames = {
    EnumName<StorageFormat>{f64, "float64"},
    EnumName<StorageFormat>{f32, "float32"},
    EnumName<StorageFormat>{f16, "float16"},
    EnumName<StorageFormat>{bf16, "bfloat16"},
    EnumName<StorageFormat>{i64, "int64"},
    EnumName<StorageFormat>{i32, "int32"},
    EnumName<StorageFormat>{i16, "int16"},
    EnumName<StorageFormat>{i8, "int8"},
    EnumName<StorageFormat>{u64, "uint64"},
    EnumName<StorageFormat>{u32, "uint32"},
    EnumName<StorageFormat>{u16, "uint16"},
    EnumName<StorageFormat>{u8, "uint8"},
    EnumName<StorageFormat>{boolean, "bool"},
    EnumName<StorageFormat>{f8_e4m3, "float8_e4m3"},
    EnumName<StorageFormat>{f8_e5m2, "float8_e5m2"},
    EnumName<StorageFormat>{q4_0, "q4_0"},
    EnumName<StorageFormat>{q4_1, "q4_1"},
    EnumName<StorageFormat>{q5_0, "q5_0"},
    EnumName<StorageFormat>{q5_1, "q5_1"},
    EnumName<StorageFormat>{q8_0, "q8_0"},
    EnumName<StorageFormat>{ct2_int8, "ct2_int8"},
};

// Elements that are stored together, and the bytes that they take.
struct Block {
  std::size_t elements;
  std::size_t bytes;
};

Block block_of(StorageFormat format) {
  switch (format) {
    case f64:
    case i64:
    case u64:
      return {1, 8};
    case f32:
    case i32:
    case u32:
      return {1, 4};
    case f16:
    case bf16:
    case i16:
    case u16:
      return {1, 2};
    case i8:
    case u8:
    case boolean:
    case f8_e4m3:
    case f8_e5m2:
    case ct2_int8:
      return {1, 1};
    case q4_0:
      return {32, 2 + 16};
    case q4_1:
      return {32, 4 + 16};
    case q5_0:
      return {32, 2 + 4 + 16};
    case q5_1:
      return {32, 4 + 4 + 16};
    case q8_0:
      return {32, 2 + 32};
  }
  CHECK(false, "a storage format without a block");
}

}  // namespace

std::span<const EnumName<StorageFormat>> storage_format_names() { return kFormatNames; }

std::optional<std::size_t> storage_bytes(StorageFormat format, const Shape& shape) {
  const auto block = block_of(format);
  const auto elements = static_cast<std::size_t>(shape.elements());
  const auto last = shape.rank() == 0 ? 1 : static_cast<std::size_t>(shape[shape.rank() - 1]);
  if (last % block.elements != 0) return std::nullopt;
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(elements / block.elements, block.bytes, &bytes)) return std::nullopt;
  return bytes;
}

void StateDict::release_pages() const {
  for (const auto& file : mapped) file->release_pages();
}

Result<StoredTensor> StateDict::find(std::string_view name) const {
  const auto it = tensors.find(name);
  if (it != tensors.end()) return it->second;
  return unexpected(ErrorCode::not_found,
                    "the checkpoint has no tensor '" + std::string(name) + "'");
}

}  // namespace oasr
