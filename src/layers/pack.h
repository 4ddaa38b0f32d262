// From stored tensors to packed weights, a row at a time: no float32 copy of a matrix is made.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernels/linear/op.h"
#include "layers/parameters.h"

namespace oasr::layers {

// The rows of several stored matrices, one after the other, decoded on demand.
class StackedRows {
 public:
  // Rows of all have as many elements. An error for a format that holds no real numbers.
  static Result<StackedRows> open(const Parameters& parameters, std::span<const std::string> names);

  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return tensors_[0].shape.elements() / tensors_[0].shape[0]; }
  std::size_t bytes() const { return bytes_; }  // stored
  std::span<const StoredTensor> tensors() const { return tensors_; }
  void read(std::int64_t row, std::span<float> out) const;
  StoredTensor stored(std::int64_t row) const;  // borrowed

 private:
  std::vector<StoredTensor> tensors_;
  std::int64_t rows_ = 0;
  std::size_t bytes_ = 0;
};

// The rows of all matrices `parts`, one after the other: the matrix `name` of the model. 16-bit storage only if
// all have it.
Result<kernels::PackedWeight> pack_stacked(const Parameters& parameters, const std::string& name,
                                           std::span<const std::string> parts,
                                           const WeightOptions& options);

// A convolution weight [C_out, C_in, 3] in the layout of kernels::conv1d.
Result<kernels::PackedWeight> pack_convolution(const Parameters& parameters,
                                               const std::string& name,
                                               const WeightOptions& options);

// A convolution weight [C_out, C_in, height, width] in the layout of kernels::conv2d.
Result<kernels::PackedWeight> pack_image_convolution(const Parameters& parameters,
                                                     const std::string& name,
                                                     const WeightOptions& options);

}  // namespace oasr::layers
