// How the numbers of a 1-D convolution (kernel 3, padding 1, time-major) are stored and multiplied.
#pragma once

#include <memory>

#include "kernels/conv1d/op.h"
#include "quant/methods/float_linear.h"
#include "quant/methods/int8_linear.h"

namespace oasr::quant {

class Conv1dMethod {
 public:
  virtual ~Conv1dMethod() = default;
  virtual void place(Gpu& gpu) = 0;  // as LinearMethod::place
  virtual MethodInfo info(Isa isa) const = 0;
  virtual void reserve(ExecContext& context) const = 0;
  // padded [1 + T + 1, C_in] contiguous, input in rows 1 … T; the first and the last row are set to
  // zero. y [conv1d_frames(T, stride), C_out]; residual like y, or empty, is added at the end. Returns
  // as LinearMethod::forward.
  virtual kernels::NotFinite forward(ExecContext& context, Matrix padded, ConstMatrix residual,
                                     Matrix y) const = 0;
  virtual std::vector<TensorSource> state(const std::string& path) const = 0;
};

// Full precision. State: weight [C_out, C_in, 3] as checkpoints have it.
class FloatConv1d final : public Conv1dMethod {
 public:
  // weight of kernels::pack_conv1d.
  FloatConv1d(kernels::PackedWeight weight, std::vector<float> bias, std::int64_t stride,
              kernels::Activation activation)
      : weight_(std::move(weight)), bias_(std::move(bias)), stride_(stride), activation_(activation) {}
  void place(Gpu& gpu) override;
  MethodInfo info(Isa isa) const override;
  void reserve(ExecContext&) const override {}
  kernels::NotFinite forward(ExecContext& context, Matrix padded, ConstMatrix residual,
                             Matrix y) const override;
  std::vector<TensorSource> state(const std::string& path) const override;

 private:
  kernels::PackedWeight weight_;
  Floats bias_;
  std::int64_t stride_;
  kernels::Activation activation_;
};

// int8 at a static input scale. A 1-D convolution over time-major rows is a product whose input rows
// overlap, so it is an Int8Linear over K = 3 · C_in. State: weight [C_out, 3, C_in].
class Int8Conv1d final : public Conv1dMethod {
 public:
  // storage.weight [C_out, 3 · C_in], column tap · C_in + channel; smooth_inv [C_in] or empty;
  // input_scale is there.
  Int8Conv1d(std::int64_t c_out, std::int64_t c_in, const Int8Storage& storage,
             std::vector<float> bias, std::int64_t stride, kernels::Activation activation,
             const kernels::ScaledMMImplementation& implementation);
  void place(Gpu& gpu) override;
  MethodInfo info(Isa isa) const override;
  void reserve(ExecContext& context) const override { product_.reserve(context); }
  kernels::NotFinite forward(ExecContext& context, Matrix padded, ConstMatrix residual,
                             Matrix y) const override;
  std::vector<TensorSource> state(const std::string& path) const override;

 private:
  std::int64_t channels_, stride_;
  std::vector<float> smooth_inv_;  // [C_in] or empty
  Int8Linear product_;
};

}  // namespace oasr::quant
