// For tests: made numbers of quantized layers, and state dicts in memory.
#pragma once

#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "kernels/testing.h"
#include "quant/methods/registry.h"

namespace oasr::quant {

inline std::span<const std::byte> bytes_of(const auto& values) { return std::as_bytes(std::span(values)); }

// Tensors with the memory they lie in.
struct OwnedSlots {
  StoredSlots slots;
  std::map<std::string, std::vector<std::byte>, std::less<>> memory;

  OwnedSlots() = default;
  OwnedSlots(OwnedSlots&&) = default;
  OwnedSlots& operator=(OwnedSlots&&) = default;

  void add(const std::string& suffix, StorageFormat format, const Shape& shape,
           std::span<const std::byte> bytes) {
    auto& own = memory[suffix];
    own.assign(bytes.begin(), bytes.end());
    slots[suffix] = {.format = format, .shape = shape, .bytes = own, .row_scale = {}};
  }
  // Float `at` of the tensor `suffix`.
  void set(const std::string& suffix, std::size_t at, float value) {
    std::memcpy(memory.at(suffix).data() + at * sizeof value, &value, sizeof value);
  }
};

// What a source writes, all rows.
inline std::vector<std::byte> written(const TensorSource& source) {
  std::vector<std::byte> bytes(*storage_bytes(source.format, source.shape));
  const std::int64_t rows = source.shape.rank() < 2 ? 1 : source.shape[0];
  const std::size_t size = bytes.size() / static_cast<std::size_t>(rows);
  for (std::int64_t row = 0; row < rows; ++row) {
    source.row(row, std::span(bytes).subspan(static_cast<std::size_t>(row) * size, size));
  }
  return bytes;
}

// A layer with a weight of this shape ([N, K], or [C_out, 3, C_in]): any int8 codes, scales that keep
// results near one.
inline OwnedSlots made_slots(const QuantizedLayer& layer, const Shape& weight, unsigned seed) {
  OwnedSlots made;
  for (const StorageSlot& slot : storage_slots(layer)) {
    const Shape shape = slot_shape(slot, weight);
    const auto count = static_cast<std::size_t>(shape.elements());
    std::mt19937 random(++seed);
    if (slot.format == StorageFormat::i8) {
      std::uniform_int_distribution<int> any(-128, 127);
      std::vector<std::int8_t> codes(count);
      for (std::int8_t& code : codes) code = static_cast<std::int8_t>(any(random));
      made.add(std::string(slot.suffix), slot.format, shape, bytes_of(codes));
      continue;
    }
    CHECK(slot.format == StorageFormat::f32, "slots hold int8 or float32");
    const bool near_one = slot.suffix == "smooth_inv";
    std::uniform_real_distribution<float> any(near_one ? 0.5f : 0.002f, near_one ? 2.0f : 0.02f);
    std::vector<float> values(count);
    for (float& value : values) value = any(random);
    made.add(std::string(slot.suffix), slot.format, shape, bytes_of(values));
  }
  return made;
}

inline std::vector<float> floats_in(const StoredTensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.shape.elements()));
  decode_to_float(tensor, values).value();
  return values;
}

// The methods of the table, each as it is and with a smoother.
inline std::vector<QuantizedLayer> every_storage() {
  std::vector<QuantizedLayer> layers;
  for (const QuantMethod& method : quant_methods()) {
    for (const bool smoothed : {false, true}) {
      layers.push_back({.scheme = std::string(method.scheme), .smoothed = smoothed});
    }
  }
  return layers;
}

}  // namespace oasr::quant
