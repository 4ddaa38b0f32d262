#include "calib/folds.h"

#include <cmath>
#include <cstring>

#include "base/check.h"

namespace oasr::calib {
namespace {

constexpr float kGreatestHalf = 65504;

std::size_t bytes_of_element(StorageFormat format) { return *storage_bytes(format, Shape{1}); }

int at(const std::vector<int>& exponents, std::size_t i) { return exponents.empty() ? 0 : exponents[i]; }

// `<path>` and "weight" of "<path>.weight".
std::pair<std::string_view, std::string_view> split_name(std::string_view name) {
  const auto dot = name.rfind('.');
  if (dot == std::string_view::npos) return {name, {}};
  return {name.substr(0, dot), name.substr(dot + 1)};
}

const Scaling* fold_of(const TensorSource& tensor, const Folds& folds) {
  const auto [path, suffix] = split_name(tensor.name);
  const auto found = folds.find(path);
  return found != folds.end() && (suffix == "weight" || suffix == "bias") ? &found->second : nullptr;
}

}  // namespace

float Scaling::apply(float value, std::size_t n, int up) const {
  const int exponent = up - at(rows, n);
  if (factors.empty()) return std::ldexp(value, exponent);
  return static_cast<float>(std::ldexp(value * factors[n], exponent));
}

FloatRows::FloatRows(TensorSource source)
    : source_(std::move(source)), columns_(source_.shape.elements() / std::max<std::int64_t>(rows(), 1)) {
  CHECK(source_.format == StorageFormat::f32 || source_.format == StorageFormat::f16 ||
            source_.format == StorageFormat::bf16,
        "full-precision models hold floats");
  bytes_.resize(static_cast<std::size_t>(columns_) * bytes_of_element(source_.format));
}

void FloatRows::read(std::int64_t row, std::span<float> out) {
  source_.row(row, bytes_);
  const auto good =
      decode_to_float({.format = source_.format, .shape = {columns_}, .bytes = bytes_, .row_scale = {}}, out);
  CHECK(good.has_value(), "floats decode");
}

std::vector<TensorSource> folded(std::vector<TensorSource> tensors, const Folds& folds) {
  for (TensorSource& tensor : tensors) {
    const Scaling* fold = fold_of(tensor, folds);
    if (fold == nullptr) continue;
    const bool matrix = tensor.shape.rank() >= 2;
    auto rows = std::make_shared<FloatRows>(tensor);
    tensor.format = StorageFormat::f32;
    tensor.row = [rows, fold, matrix, values = std::vector<float>(static_cast<std::size_t>(rows->columns()))](
                     std::int64_t row, std::span<std::byte> out) mutable {
      rows->read(row, values);
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = matrix ? fold->apply(values[i], static_cast<std::size_t>(row), at(fold->columns, i))
                           : fold->apply(values[i], i, 0);
      }
      std::memcpy(out.data(), values.data(), out.size());
    };
  }
  return tensors;
}

Status check_half_range(const std::vector<TensorSource>& tensors, const Folds& folds) {
  for (const TensorSource& tensor : tensors) {
    if (fold_of(tensor, folds) == nullptr) continue;
    FloatRows rows(tensor);
    std::vector<float> values(static_cast<std::size_t>(rows.columns()));
    for (std::int64_t row = 0; row < rows.rows(); ++row) {
      rows.read(row, values);
      for (const float value : values) {
        if (std::abs(value) <= kGreatestHalf) continue;
        return unexpected(ErrorCode::unsupported, "a smoothed value is beyond the range of float16",
                          tensor.name, "use a smaller alpha, or leave the layer out with --ignore");
      }
    }
  }
  return {};
}

}  // namespace oasr::calib
