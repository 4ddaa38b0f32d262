#include "calib/weights.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "quant/methods/float_linear.h"

namespace oasr::calib {
namespace {

std::vector<float> all_values(const TensorSource& tensor) {
  FloatRows rows(tensor);
  std::vector<float> values(static_cast<std::size_t>(rows.columns()));
  rows.read(0, values);
  return values;
}

// [C, taps] of a convolution's row becomes [taps, C].
void taps_first(std::span<const float> row, std::int64_t channels, std::span<float> out) {
  const auto c_in = static_cast<std::size_t>(channels), taps = row.size() / c_in;
  for (std::size_t c = 0; c < c_in; ++c) {
    for (std::size_t tap = 0; tap < taps; ++tap) out[tap * c_in + c] = row[c * taps + tap];
  }
}

}  // namespace

Weights::Weights(const layers::LayerList& layers, std::span<const TensorSource> originals) {
  for (TensorSource& tensor : layers.state()) {
    std::string name = tensor.name;
    tensors_.emplace(std::move(name), std::move(tensor));
  }
  for (const TensorSource& original : originals) {
    const auto kept = tensors_.find(original.name);
    CHECK(kept != tensors_.end() && kept->second.shape == original.shape,
          "the model has no such matrix: " + original.name);
    kept->second = original;
  }
}

const TensorSource& Weights::at(const std::string& name) const {
  const auto found = tensors_.find(name);
  CHECK(found != tensors_.end(), "the model has no tensor " + name);
  return found->second;
}

std::vector<float> Weights::column_amax(const std::string& path) const {
  FloatRows rows(at(path + ".weight"));
  const auto channels = static_cast<std::size_t>(rows.source().shape[1]);
  const auto taps = static_cast<std::size_t>(rows.columns()) / channels;
  std::vector<float> row(channels * taps), greatest(channels, 0.0f);
  for (std::int64_t n = 0; n < rows.rows(); ++n) {
    rows.read(n, row);
    for (std::size_t i = 0; i < row.size(); ++i)
      greatest[i / taps] = std::max(greatest[i / taps], std::abs(row[i]));
  }
  return greatest;
}

std::int64_t Weights::rows(const std::string& path) const { return at(path + ".weight").shape[0]; }

std::vector<float> Weights::output_amax(const std::string& path) const {
  FloatRows rows(at(path + ".weight"));
  const auto outputs = static_cast<std::size_t>(rows.source().shape[0]);
  const auto width = static_cast<std::size_t>(rows.source().shape.elements()) / outputs;  // 1: gamma
  std::vector<float> row(static_cast<std::size_t>(rows.columns())), greatest = bias(path);
  greatest.resize(outputs, 0.0f);
  for (float& value : greatest) value = std::abs(value);
  for (std::int64_t n = 0; n < rows.rows(); ++n) {
    rows.read(n, row);
    for (std::size_t i = 0; i < row.size(); ++i) {
      float& most = greatest[(static_cast<std::size_t>(n) * row.size() + i) / width];
      most = std::max(most, std::abs(row[i]));
    }
  }
  return greatest;
}

std::vector<float> Weights::bias(const std::string& path) const {
  const auto found = tensors_.find(path + ".bias");
  return found == tensors_.end() ? std::vector<float>() : all_values(found->second);
}

quant::WeightSource Weights::source(const std::string& path, const Scaling& fold) const {
  const TensorSource& weight = at(path + ".weight");
  const Shape& shape = weight.shape;
  auto rows = std::make_shared<FloatRows>(weight);
  if (shape.rank() == 2) {
    return {.shape = shape, .rows = [rows, &fold](std::int64_t n, std::span<float> out) {
              rows->read(n, out);
              for (std::size_t k = 0; k < out.size(); ++k) {
                out[k] = fold.apply(out[k], static_cast<std::size_t>(n),
                                    fold.columns.empty() ? 0 : fold.columns[k]);
              }
            }};
  }
  CHECK(fold.rows.empty() && fold.columns.empty() && fold.factors.empty(), "no fold reaches a convolution");
  const std::int64_t channels = shape[1];
  Shape stored =
      shape.rank() == 3 ? Shape{shape[0], shape[2], channels} : Shape{shape[0], shape[2], shape[3], channels};
  return {.shape = stored,
          .rows = [rows, channels, row = std::vector<float>(static_cast<std::size_t>(rows->columns()))](
                      std::int64_t n, std::span<float> out) mutable {
            rows->read(n, row);
            taps_first(row, channels, out);
          }};
}

quant::LinearMethodPtr Weights::exact(const std::string& path, std::vector<float> bias,
                                      kernels::Activation activation) const {
  const Scaling none;
  const quant::WeightSource weight = source(path, none);
  auto packed = std::make_shared<kernels::PackedWeight>(
      kernels::PackedWeight::pack(weight.shape[0], weight.shape[1], DType::f32, weight.rows));
  return std::make_unique<quant::FloatLinear>(std::move(packed), std::move(bias), activation);
}

}  // namespace oasr::calib
