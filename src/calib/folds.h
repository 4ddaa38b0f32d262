// What smoothing multiplies stored tensors by, in their rows, columns or elements: powers of two, which round
// nothing, and factors of rows.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/safetensors_writer.h"

namespace oasr::calib {

// weight'[n, k] = weight[n, k] · factors[n] · 2^(columns[k] − rows[n]), bias'[n] = bias[n] · factors[n] ·
// 2^−rows[n], rounded once to float32. Of a norm no columns: gamma and beta. Empty: zeros, and factors of 1.
struct Scaling {
  std::vector<int> rows, columns;
  std::vector<double> factors = {};

  // A value of output `n`: times factors[n] · 2^(up − rows[n]).
  float apply(float value, std::size_t n, int up) const;
};

// By the path of a layer.
using Folds = std::map<std::string, Scaling, std::less<>>;

// The tensors of a full-precision model with the folds of their layers in `<path>.weight` and
// `<path>.bias`, as float32: 16-bit formats would round what becomes subnormal. The others as they are. They
// borrow from `folds`.
std::vector<TensorSource> folded(std::vector<TensorSource> tensors, const Folds& folds);

// A row of a float tensor as float32.
class FloatRows {
 public:
  explicit FloatRows(TensorSource source);
  const TensorSource& source() const { return source_; }
  std::int64_t rows() const { return source_.shape.rank() < 2 ? 1 : source_.shape[0]; }
  std::int64_t columns() const { return columns_; }
  // columns() floats.
  void read(std::int64_t row, std::span<float> out);

 private:
  TensorSource source_;
  std::int64_t columns_;
  std::vector<std::byte> bytes_;
};

// A value of the tensors beyond what float16 holds would be infinite where they are served in it: the name
// of the first such tensor, if its layer is one of `folds`.
Status check_half_range(const std::vector<TensorSource>& tensors, const Folds& folds);

}  // namespace oasr::calib
