// int8 convolution, one and two dimensions: dense, groups 1, zero padding, one static input scale.
//
// It is a scaled_mm() whose row (b, oy, ox) is the receptive field of that output, gathered from x
// while the rows are loaded (implicit GEMM: no im2col buffer), so its contract holds: exact int32
// sums, the epilogue of epilogue.h, all bits independent of sizes and threads. Padding is q = 0.
#pragma once

#include "kernels/scaled_mm/op.h"

namespace oasr::kernels {

// One axis of a convolution: kernel taps, stride, dilation, zeros before and after.
struct ConvAxis {
  std::int64_t taps = 1, stride = 1, dilation = 1;
  std::int64_t before = 0, after = 0;
  // Outputs for `size` inputs; 0 when the padded input is shorter than the kernel.
  std::int64_t outputs(std::int64_t size) const {
    const std::int64_t span = size + before + after - ((taps - 1) * dilation + 1);
    return span < 0 ? 0 : span / stride + 1;
  }
};

struct ScaledConvArgs {
  // [batch, height, width, channels], channels contiguous; a 1-D convolution [batch, time,
  // channels] has height 1 and a `vertical` axis of one tap.
  const std::int8_t* x = nullptr;
  std::int64_t batch = 1, height = 1, width = 0;
  std::int64_t stride_batch = 0, stride_row = 0, stride_pixel = 0;  // in elements
  ConvAxis vertical, horizontal;
  const float* x_scale = nullptr;            // [1]
  // [C_out, taps of vertical · taps of horizontal · C_in]: packed from KRSC, or KSC for 1-D.
  const PackedInt8Weight* weight = nullptr;
  const float* bias = nullptr;               // [C_out] or null
  Activation activation = Activation::none;

  std::int64_t channels() const { return weight->k() / (vertical.taps * horizontal.taps); }
  std::int64_t out_height() const { return vertical.outputs(height); }
  std::int64_t out_width() const { return horizontal.outputs(width); }
  std::int64_t rows() const { return batch * out_height() * out_width(); }
};

// y is [batch · out_height · out_width, C_out] with row stride ldy, the same for the residual.
// Scratch memory: scaled_mm_reserve(context, weight->k()).
void scaled_conv(ExecContext& context, const ScaledConvArgs& args, const FloatOutput& out);

// The definition: plain loops, single thread.
void scaled_conv_reference(const ScaledConvArgs& args, const FloatOutput& out);

}  // namespace oasr::kernels
