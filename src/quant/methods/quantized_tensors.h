// The tensors of one quantized layer in memory: what a method makes of float rows, before they are written
// or served.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "quant/methods/tensor_sources.h"

namespace oasr::quant {

// The stored tensors of a layer by suffix, with the formats and shapes of its slots.
using StoredSlots = std::map<std::string, StoredTensor, std::less<>>;

struct QuantizedTensors {
  struct Tensor {
    StorageFormat format = StorageFormat::f32;
    Shape shape;
    std::vector<std::byte> bytes;
  };
  std::map<std::string, Tensor, std::less<>> tensors;  // by suffix

  void add(std::string suffix, StorageFormat format, const Shape& shape, std::span<const std::byte> bytes);
  // Borrowed.
  StoredSlots view() const;
  // `path`.<suffix> of every tensor, borrowed.
  std::vector<TensorSource> sources(const std::string& path) const;
};

// What calibration found for a layer.
struct Calibration {
  std::vector<float> smooth_inv = {};       // [columns] or empty: applied as the input is quantized
  std::optional<float> input_scale = {};    // static schemes
  // [columns] or empty: E[x²] of the input as it is multiplied, smoothed if the layer is. Methods that search
  // what to round to weigh errors with it.
  std::vector<double> importance = {};
};

// A weight of float32 rows, as the method stores them: [N, K]; [N, 3, C] and [N, height, width, C] of
// convolutions, a row being all of one output channel.
struct WeightSource {
  Shape shape;
  std::function<void(std::int64_t n, std::span<float> out)> rows;
};

}  // namespace oasr::quant
