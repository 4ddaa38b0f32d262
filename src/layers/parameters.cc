#include "layers/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <set>

#include "base/check.h"

namespace oasr::layers {
namespace {

bool same_without_ones(const Shape& a, const Shape& b) {
  std::vector<std::int64_t> x, y;
  std::ranges::copy_if(a.extents(), std::back_inserter(x), [](auto n) { return n != 1; });
  std::ranges::copy_if(b.extents(), std::back_inserter(y), [](auto n) { return n != 1; });
  return x == y;
}

// The shape that the stored tensor must have.
Shape stored_shape(const ParameterSpec& spec) {
  if (spec.parts == 1) return spec.shape;
  std::vector<std::int64_t> extents(spec.shape.extents().begin(), spec.shape.extents().end());
  extents[0] *= spec.parts;
  return Shape::checked(extents).value_or(Shape{});
}

// "3 missing: a, b, c"
void add_names(std::string& text, std::string_view what, const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 8;
  if (names.empty()) return;
  if (!text.empty()) text += "; ";
  text += std::to_string(names.size()) + " " + std::string(what) + ": ";
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    if (i > 0) text += ", ";
    text += names[i];
  }
  if (names.size() > kShown) text += " and " + std::to_string(names.size() - kShown) + " more";
}

std::string format_name(StorageFormat format) {
  return std::string(enum_name(storage_format_names(), format));
}

// Integers without scales are the codes of numbers that are not known.
bool holds_integers(StorageFormat format) {
  using enum StorageFormat;
  constexpr std::array kIntegers = {i64, i32, i16, i8, u64, u32, u16, u8};
  return std::ranges::find(kIntegers, format) != kIntegers.end();
}

Result<bool> is_all_zeros(const StoredTensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.shape.elements()));
  TRY(decode_to_float(tensor, values));
  return std::ranges::all_of(values, [](float v) { return v == 0.0f; });
}

}  // namespace

void release_as_consumed(Parameters& parameters, const StateDict& state) {
  constexpr std::size_t kEvery = std::size_t{8} << 20;
  struct Files {
    StateDict state;
    std::atomic<std::size_t> waiting = 0;  // bytes that were read since pages were last dropped
  };
  const auto files = std::make_shared<Files>();
  files->state.owners = state.owners;
  files->state.mapped = state.mapped;
  parameters.on_consumed([files](std::size_t bytes) {
    if (files->waiting.fetch_add(bytes) + bytes < kEvery) return;
    files->waiting = 0;
    files->state.release_pages();
  });
}

StoredTensor row_range(const StoredTensor& tensor, std::int64_t first, std::int64_t count) {
  CHECK(tensor.shape.rank() >= 1, "a scalar has no rows");
  const std::int64_t rows = tensor.shape[0];
  CHECK(first >= 0 && count >= 0 && first + count <= rows, "rows outside the tensor");
  std::vector<std::int64_t> extents(tensor.shape.extents().begin(), tensor.shape.extents().end());
  extents[0] = count;
  StoredTensor part = tensor;
  part.shape = *Shape::checked(extents);
  const std::size_t row_bytes = rows == 0 ? 0 : tensor.bytes.size() / static_cast<std::size_t>(rows);
  part.bytes = tensor.bytes.subspan(static_cast<std::size_t>(first) * row_bytes,
                                    static_cast<std::size_t>(count) * row_bytes);
  if (!tensor.row_scale.empty()) {
    part.row_scale = tensor.row_scale.subspan(static_cast<std::size_t>(first) * sizeof(float),
                                              static_cast<std::size_t>(count) * sizeof(float));
  }
  return part;
}

Result<Parameters> Parameters::match(const StateDict& state, std::span<const ParameterSpec> specs) {
  using Presence = ParameterSpec::Presence;
  Parameters parameters;
  std::set<std::string_view> used, missing_seen;
  std::vector<std::string> missing, extra, misshapen, other_format, not_zero;
  for (const ParameterSpec& spec : specs) {
    const auto found = state.tensors.find(spec.stored);
    if (found == state.tensors.end()) {
      if (spec.presence == Presence::required && missing_seen.insert(spec.stored).second) {
        missing.push_back(spec.stored);
      }
      continue;
    }
    const StoredTensor& tensor = found->second;
    const bool first_use = used.insert(found->first).second;
    if (spec.presence == Presence::ignored) continue;
    const Shape expected = stored_shape(spec);
    if (!same_without_ones(tensor.shape, expected)) {
      if (first_use) {
        misshapen.push_back(spec.stored + " is " + tensor.shape.to_string() + " instead of " +
                            expected.to_string());
      }
      continue;
    }
    if (spec.format ? tensor.format != *spec.format : holds_integers(tensor.format)) {
      other_format.push_back(spec.stored + " is " + format_name(tensor.format) + " instead of " +
                             (spec.format ? format_name(*spec.format) : "full precision"));
      continue;
    }
    StoredTensor reshaped = tensor;
    reshaped.shape = expected;
    if (spec.parts > 1) reshaped = row_range(reshaped, spec.part * spec.shape[0], spec.shape[0]);
    if (spec.presence == Presence::zeros) {
      if (!TRY(is_all_zeros(reshaped))) not_zero.push_back(spec.stored);
      continue;
    }
    parameters.tensors_.emplace(spec.name, reshaped);
  }
  for (const auto& [name, tensor] : state.tensors) {
    if (!used.contains(name)) extra.push_back(name);
  }
  std::string text;
  add_names(text, "missing", missing);
  add_names(text, "extra", extra);
  add_names(text, "misshapen", misshapen);
  add_names(text, "of another dtype", other_format);
  add_names(text, "with a bias that must be zero", not_zero);
  if (!text.empty()) {
    return unexpected(ErrorCode::bad_checkpoint, "the tensors do not fit the architecture: " + text,
                      {}, "check that configuration and weights are of the same model");
  }
  return parameters;
}

const StoredTensor& Parameters::get(std::string_view name) const {
  const auto found = tensors_.find(name);
  CHECK(found != tensors_.end(), "no tensor '" + std::string(name) + "' was matched");
  return found->second;
}

Result<std::vector<float>> read_floats(const Parameters& parameters, std::string_view name) {
  const StoredTensor& tensor = parameters.get(name);
  std::vector<float> values(static_cast<std::size_t>(tensor.shape.elements()));
  if (auto status = decode_to_float(tensor, values); !status) {
    return unexpected(status.error().code, status.error().what, std::string(name),
                      status.error().remedy);
  }
  const auto finite = [](float value) { return std::isfinite(value); };
  if (const auto found = std::ranges::find_if_not(values, finite); found != values.end()) {
    return unexpected(ErrorCode::bad_checkpoint,
                      fmt::format("element {} is {}", found - values.begin(), *found), std::string(name),
                      "the checkpoint is damaged: download or convert it again");
  }
  parameters.consumed(tensor.bytes.size());
  return values;
}

std::vector<ParameterSpec> slot_specs(const std::string& path, const quant::QuantizedLayer& layer,
                                      const Shape& weight, std::int64_t columns) {
  std::vector<ParameterSpec> specs;
  for (const quant::StorageSlot& slot : quant::storage_slots(layer)) {
    const std::string name = path + "." + std::string(slot.suffix);
    const Shape shape = quant::slot_shape(slot, weight, columns);
    specs.push_back({.name = name, .shape = shape, .stored = name, .format = slot.format});
  }
  return specs;
}

quant::StoredSlots stored_slots(const Parameters& parameters, const std::string& path,
                                const quant::QuantizedLayer& layer) {
  quant::StoredSlots slots;
  for (const quant::StorageSlot& slot : quant::storage_slots(layer)) {
    const std::string suffix(slot.suffix);
    slots.emplace(suffix, parameters.get(path + "." + suffix));
  }
  return slots;
}

DType storage_dtype(StorageFormat format, const WeightOptions& options) {
  if (options.dtype) return *options.dtype;
  if (format == StorageFormat::f16) return DType::f16;
  if (format == StorageFormat::bf16) return DType::bf16;
  return DType::f32;
}

}  // namespace oasr::layers
