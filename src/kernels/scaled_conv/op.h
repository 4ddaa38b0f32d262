// int8 convolution, one and two dimensions: dense, groups 1, zero padding, one static input scale.
//
// It is a scaled_mm() whose row (b, oy, ox) is the receptive field of that output, gathered from x
// while the rows are loaded (implicit GEMM: no im2col buffer), so its contract holds: exact int32
// sums, the epilogue of epilogue.h, all bits independent of sizes and threads. Padding is q = 0.
#pragma once

#include "kernels/conv_geometry.h"
#include "kernels/quantize/op.h"
#include "kernels/scaled_mm/op.h"

namespace oasr::kernels {

struct ScaledConvArgs {
  // A 1-D convolution [batch, time, channels] has height 1 and a `vertical` axis of one tap.
  const std::int8_t* x = nullptr;
  ConvGeometry geometry;
  const float* x_scale = nullptr;            // [1]
  // [C_out, geometry.k()]: packed from KRSC, or KSC for 1-D.
  const PackedInt8Weight* weight = nullptr;
  const float* bias = nullptr;               // [C_out] or null
  Activation activation = Activation::none;
};

// y is [geometry.rows(), C_out] with row stride ldy, the same for the residual.
// Scratch memory: scaled_mm_reserve(context, weight->k()).
void scaled_conv(ExecContext& context, const ScaledConvArgs& args, const FloatOutput& out);

// The same on floats that are quantized while they are gathered: bit-identical to quantize_static() of the
// pixels, then scaled_conv(). Reports the lowest row of the output whose receptive field is not finite.
struct StaticScaledConvArgs {
  const float* x = nullptr;
  ConvGeometry geometry;
  const float* multiplier = nullptr;  // [geometry.k()], of static_multiplier(), the same for every tap
  const float* x_scale = nullptr;     // [1]
  const PackedInt8Weight* weight = nullptr;
  const float* bias = nullptr;        // [C_out] or null
  Activation activation = Activation::none;
};
NotFinite scaled_conv_static(ExecContext& context, const StaticScaledConvArgs& args, const FloatOutput& out);

// The definitions: plain loops, single thread. They allocate.
void scaled_conv_reference(const ScaledConvArgs& args, const FloatOutput& out);
NotFinite scaled_conv_static_reference(const StaticScaledConvArgs& args, const FloatOutput& out);

}  // namespace oasr::kernels
