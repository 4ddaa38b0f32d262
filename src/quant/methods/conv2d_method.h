// How the numbers of a 2-D convolution (dense, channels last) are stored and multiplied.
#pragma once

#include <memory>

#include "kernels/conv2d/op.h"
#include "quant/methods/float_linear.h"
#include "quant/methods/int8_linear.h"

namespace oasr::quant {

// Images of one size. As rows of a matrix [pixels(), channels]: row (b · height + y) · width + x. For
// spectrograms height is time and width frequency.
struct ImageExtent {
  std::int64_t batch = 1, height = 0, width = 0;
  std::int64_t pixels() const { return batch * height * width; }
  friend bool operator==(const ImageExtent&, const ImageExtent&) = default;
};

// What a 2-D convolution is beside its numbers.
struct Conv2dShape {
  std::int64_t c_out = 0, c_in = 0;
  kernels::ConvAxis vertical, horizontal;
  kernels::Activation activation = kernels::Activation::none;

  std::int64_t taps() const { return vertical.taps * horizontal.taps; }
  ImageExtent outputs(ImageExtent in) const {
    return {.batch = in.batch, .height = vertical.outputs(in.height), .width = horizontal.outputs(in.width)};
  }
  // Of contiguous images.
  kernels::ConvGeometry geometry(ImageExtent in) const {
    return {.batch = in.batch, .height = in.height, .width = in.width, .channels = c_in,
            .stride_batch = in.height * in.width * c_in, .stride_row = in.width * c_in, .stride_pixel = c_in,
            .vertical = vertical, .horizontal = horizontal};
  }
};

// Immutable, shared by sessions. No allocation in forward after reserve().
class Conv2dMethod {
 public:
  explicit Conv2dMethod(const Conv2dShape& shape) : shape_(shape) {}
  virtual ~Conv2dMethod() = default;
  virtual void place(Gpu& gpu) = 0;  // as LinearMethod::place
  const Conv2dShape& shape() const { return shape_; }
  virtual MethodInfo info(Isa isa) const = 0;
  virtual void reserve(ExecContext& context) const = 0;
  // x [in.pixels(), C_in] contiguous, y [outputs(in).pixels(), C_out]; y must not overlap x. An output's bits
  // depend on its receptive field only. Returns as LinearMethod::forward; the row is an output's.
  kernels::NotFinite forward(ExecContext& context, ImageExtent in, ConstMatrix x, Matrix y) const;
  virtual std::vector<TensorSource> state(const std::string& path) const = 0;

 private:
  virtual kernels::NotFinite run(ExecContext& context, const kernels::ConvGeometry& geometry, const float* x,
                                 Matrix y) const = 0;
  Conv2dShape shape_;
};

// Full precision. State: weight [C_out, C_in, height, width] as checkpoints have it.
class FloatConv2d final : public Conv2dMethod {
 public:
  // weight of kernels::pack_conv2d; bias [C_out] or empty.
  FloatConv2d(const Conv2dShape& shape, kernels::PackedWeight weight, std::vector<float> bias);
  void place(Gpu& gpu) override;
  MethodInfo info(Isa isa) const override;
  void reserve(ExecContext& context) const override { kernels::conv2d_reserve(context, weight_.k()); }
  std::vector<TensorSource> state(const std::string& path) const override;

 private:
  kernels::NotFinite run(ExecContext& context, const kernels::ConvGeometry& geometry, const float* x,
                         Matrix y) const override;
  kernels::PackedWeight weight_;
  Floats bias_;
};

// int8 at a static input scale. State: weight [C_out, height, width, C_in].
class Int8Conv2d final : public Conv2dMethod {
 public:
  // storage.weight [C_out, height · width · C_in] in the order of the state; smooth_inv [C_in] or empty;
  // input_scale is there; bias [C_out] or empty.
  Int8Conv2d(const Conv2dShape& shape, const Int8Storage& storage, std::vector<float> bias,
             const kernels::ScaledMMImplementation& implementation);
  void place(Gpu& gpu) override;
  MethodInfo info(Isa isa) const override;
  void reserve(ExecContext& context) const override { implementation_->reserve(context, weight_.k()); }
  std::vector<TensorSource> state(const std::string& path) const override;

 private:
  kernels::NotFinite run(ExecContext& context, const kernels::ConvGeometry& geometry, const float* x,
                         Matrix y) const override;
  kernels::PackedInt8Weight weight_;
  Floats bias_;
  std::vector<float> smooth_inv_;
  StaticInput input_;
  const kernels::ScaledMMImplementation* implementation_;
  std::string kernel_on_gpu_;  // once it is placed
};

}  // namespace oasr::quant
