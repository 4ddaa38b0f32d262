// A dense 1-D convolution, kernel 3 and padding 1, over time-major activations [T, C].
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/conv1d/op.h"
#include "layers/matrix.h"
#include "layers/parameters.h"

namespace oasr::layers {

// The numbers of one convolution and the code that multiplies with them, as LinearMethod.
class Conv1dMethod {
 public:
  virtual ~Conv1dMethod() = default;
  virtual std::string_view name() const = 0;  // "float"
  virtual std::size_t bytes() const = 0;
  // padded [1 + T + 1, C_in] contiguous, input in rows 1 … T; the first and the last row are set to
  // zero. y [conv1d_frames(T, stride), C_out]; residual like y, or empty, is added at the end.
  virtual void forward(ExecContext& context, Matrix padded, ConstMatrix residual, Matrix y) const = 0;
};

// Full precision, see FloatLinear.
class FloatConv1d final : public Conv1dMethod {
 public:
  FloatConv1d(kernels::PackedWeight weight, std::vector<float> bias, int stride,
              kernels::Activation activation)
      : weight_(std::move(weight)), bias_(std::move(bias)), stride_(stride), activation_(activation) {}
  std::string_view name() const override { return "float"; }
  std::size_t bytes() const override { return weight_.bytes() + bias_.size() * sizeof(float); }
  void forward(ExecContext& context, Matrix padded, ConstMatrix residual, Matrix y) const override;

 private:
  kernels::PackedWeight weight_;  // of pack_conv1d
  std::vector<float> bias_;
  int stride_;
  kernels::Activation activation_;
};

class Conv1d {
 public:
  // Packs `<path>.weight` [C_out, C_in, 3] and reads `<path>.bias` [C_out].
  static Result<Conv1d> load(const Parameters& parameters, std::string path, int stride,
                             kernels::Activation activation, const WeightOptions& options);

  const std::string& path() const { return path_; }
  const Conv1dMethod& method() const { return *method_; }

  void forward(ExecContext& context, Matrix padded, ConstMatrix residual, Matrix y) const {
    method_->forward(context, padded, residual, y);
  }

 private:
  Conv1d(std::string path, std::unique_ptr<const Conv1dMethod> method)
      : path_(std::move(path)), method_(std::move(method)) {}

  std::string path_;
  std::unique_ptr<const Conv1dMethod> method_;
};

}  // namespace oasr::layers
