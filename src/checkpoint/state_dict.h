// Tensors of a checkpoint as they are stored: by name, borrowed from the file.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_table.h"
#include "base/fs.h"
#include "base/result.h"
#include "tensor/tensor.h"

namespace oasr {

// How the bytes encode the numbers.
enum class StorageFormat : std::uint8_t {
  f64,
  f32,
  f16,
  bf16,
  i64,
  i32,
  i16,
  i8,
  u64,
  u32,
  u16,
  u8,
  boolean,
  f8_e4m3,
  f8_e5m2,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,      // ggml blocks of 32 along the last axis
  ct2_int8,  // int8 rows with a float32 scale a row: value = code / scale
};
std::span<const EnumName<StorageFormat>> storage_format_names();

// Bytes of `shape` in `format`; nothing on overflow or when blocks do not divide the last axis.
std::optional<std::size_t> storage_bytes(StorageFormat format, const Shape& shape);

// One tensor. The bytes are borrowed from a keep-alive of the StateDict and may be unaligned.
struct StoredTensor {
  StorageFormat format = StorageFormat::f32;
  Shape shape;  // logical, row-major
  std::span<const std::byte> bytes;
  std::span<const std::byte> row_scale;  // ct2_int8 only: float32 [shape[0]]
};

// Writes the tensor's values as float32 (exact for everything but f64 and integers over 2^24).
// An error for formats that hold no real numbers. `out` has shape.elements() elements.
Status decode_to_float(const StoredTensor& tensor, std::span<float> out);

class StateDict {
 public:
  std::map<std::string, StoredTensor, std::less<>> tensors;
  std::vector<std::shared_ptr<const void>> owners;  // files and buffers that the bytes live in

  std::vector<std::shared_ptr<const MappedFile>> mapped;  // the files among the owners

  // Lets the pages of mapped files go (they are read again when needed): packing a checkpoint then
  // costs the memory of the packed weights only.
  void release_pages() const;

  // not_found error naming the tensor if it is missing.
  Result<StoredTensor> find(std::string_view name) const;
};

}  // namespace oasr
