// For tests: made numbers of quantized layers, and state dicts in memory.
#pragma once

#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "kernels/testing.h"
#include "formats/testing.h"
#include "quant/methods/registry.h"
#include "quant/methods/w4a8_linear.h"

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

// Which form a scheme's 4-bit weights have; nothing for other weights.
inline std::optional<formats::W4Form> w4_form(std::string_view scheme) {
  const QuantArgs& weights = (*known_scheme(scheme))->weights;
  if (weights.format != NumberFormat::int4) return std::nullopt;
  return weights.granularity == Granularity::per_group ? formats::W4Form::per_group : formats::W4Form::per_channel;
}

// A layer with a weight of this shape ([N, K], or [C_out, 3, C_in]): any codes, scales that keep results near
// one.
inline OwnedSlots made_slots(const QuantizedLayer& layer, const Shape& weight, unsigned seed) {
  OwnedSlots made;
  if (const auto form = w4_form(layer.scheme)) {
    const auto stored = stored_w4(
        formats::random_weight(*form, *layer.zero_domain, weight[0], weight[1], seed), {}).value();
    for (const auto& [suffix, tensor] : stored.tensors) {
      made.add(suffix, tensor.format, tensor.shape, tensor.bytes);
    }
  }
  for (const StorageSlot& slot : storage_slots(layer)) {
    if (made.slots.contains(slot.suffix)) continue;
    const Shape shape = slot_shape(slot, weight, weight[weight.rank() - 1]);
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

// The methods of the table, each as it is and with a smoother, 4-bit weights with zeros of either domain.
inline std::vector<QuantizedLayer> every_storage() {
  std::vector<QuantizedLayer> layers;
  for (const QuantMethod& method : quant_methods()) {
    for (const bool smoothed : {false, true}) {
      QuantizedLayer layer = quantized_layer(method.scheme, smoothed);
      layers.push_back(layer);
      if (!layer.zero_domain) continue;
      for (const auto& [domain, name] : formats::zero_domain_names()) {
        if (domain == layer.zero_domain) continue;
        layers.push_back(layer);
        layers.back().zero_domain = domain;
      }
    }
  }
  return layers;
}

}  // namespace oasr::quant
