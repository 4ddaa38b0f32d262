// A dense 2-D convolution over images [batch, height, width, channels], channels last.
#pragma once

#include <string>

#include "layers/parameters.h"
#include "quant/methods/conv2d_method.h"

namespace oasr::layers {

using quant::ImageExtent;

struct Conv2dSpec {
  std::string path;
  kernels::ConvAxis vertical, horizontal;  // taps, stride, padding; of a spectrogram: time, frequency
  kernels::Activation activation = kernels::Activation::none;
};

class Conv2d {
 public:
  // Makes the method that the options name for the path from `<path>.weight` [C_out, C_in, height, width] and
  // `<path>.bias` [C_out] (zeros without one), or from a quantized layer's tensors.
  static Result<Conv2d> load(const Parameters& parameters, Conv2dSpec spec, const WeightOptions& options);

  void place(Gpu& gpu) { method_->place(gpu); }
  const std::string& path() const { return path_; }
  const quant::Conv2dMethod& method() const { return *method_; }
  ImageExtent outputs(ImageExtent in) const { return method_->shape().outputs(in); }

  // As Conv2dMethod::forward.
  void forward(ExecContext& context, ImageExtent in, ConstMatrix x, Matrix y) const;

 private:
  Conv2d(std::string path, quant::Conv2dMethodPtr method) : path_(std::move(path)), method_(std::move(method)) {}

  std::string path_;
  quant::Conv2dMethodPtr method_;
};

}  // namespace oasr::layers
