// A dense 1-D convolution, kernel 3 and padding 1, over time-major activations [T, C].
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "layers/parameters.h"
#include "quant/methods/conv1d_method.h"

namespace oasr::layers {

struct Conv1dSpec {
  std::string path;
  std::int64_t stride = 1;
  kernels::Activation activation = kernels::Activation::none;
};

class Conv1d {
 public:
  // Makes the method that the options name for the path from `<path>.weight` [C_out, C_in, 3] and
  // `<path>.bias` [C_out], or from a quantized layer's tensors.
  static Result<Conv1d> load(const Parameters& parameters, Conv1dSpec spec,
                             const WeightOptions& options);

  void place(Gpu& gpu) { method_->place(gpu); }
  const std::string& path() const { return path_; }
  const quant::Conv1dMethod& method() const { return *method_; }

  // As Conv1dMethod::forward.
  void forward(ExecContext& context, Matrix padded, ConstMatrix residual, Matrix y) const;

 private:
  Conv1d(std::string path, quant::Conv1dMethodPtr method)
      : path_(std::move(path)), method_(std::move(method)) {}

  std::string path_;
  quant::Conv1dMethodPtr method_;
};

}  // namespace oasr::layers
