#include "quant/methods/tensor_sources.h"

#include <cstring>

#include "base/check.h"

namespace oasr::quant {

TensorSource float_source(std::string name, const Shape& shape, std::span<const float> values) {
  CHECK(shape.elements() == static_cast<std::int64_t>(values.size()), "values of another shape");
  const std::size_t slice =
      shape.rank() < 2 ? values.size() : values.size() / static_cast<std::size_t>(shape[0]);
  return {.name = std::move(name),
          .format = StorageFormat::f32,
          .shape = shape,
          .row = [values, slice](std::int64_t row, std::span<std::byte> out) {
            const auto from = values.subspan(static_cast<std::size_t>(row) * slice, slice);
            std::memcpy(out.data(), from.data(), from.size_bytes());
          }};
}

void add_bias(const std::string& path, std::span<const float> bias, std::vector<TensorSource>& out) {
  if (bias.empty()) return;
  out.push_back(float_source(path + ".bias", {static_cast<std::int64_t>(bias.size())}, bias));
}

}  // namespace oasr::quant
