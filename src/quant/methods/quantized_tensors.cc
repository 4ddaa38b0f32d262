#include "quant/methods/quantized_tensors.h"

#include <cstring>

namespace oasr::quant {

void QuantizedTensors::add(std::string suffix, StorageFormat format, const Shape& shape,
                     std::span<const std::byte> bytes) {
  tensors[std::move(suffix)] = {.format = format, .shape = shape, .bytes = {bytes.begin(), bytes.end()}};
}

StoredSlots QuantizedTensors::view() const {
  StoredSlots slots;
  for (const auto& [suffix, tensor] : tensors) {
    slots[suffix] = {.format = tensor.format, .shape = tensor.shape, .bytes = tensor.bytes, .row_scale = {}};
  }
  return slots;
}

std::vector<TensorSource> QuantizedTensors::sources(const std::string& path) const {
  std::vector<TensorSource> sources;
  for (const auto& [suffix, tensor] : tensors) {
    sources.push_back({.name = path + "." + suffix,
                       .format = tensor.format,
                       .shape = tensor.shape,
                       .row = [&tensor](std::int64_t row, std::span<std::byte> out) {
                         std::memcpy(out.data(), tensor.bytes.data() + static_cast<std::size_t>(row) * out.size(),
                                     out.size());
                       }});
  }
  return sources;
}

}  // namespace oasr::quant
