// y = act(conv2d(x, W) + bias): dense, groups 1, zero padding, channels last.
//
// Contract: linear's, on the receptive field of an output: an fma chain over the kernel's rows in rising
// order, over its columns within a row, over the channels within a column; padding takes part as zeros.
// All bits of an output depend on its receptive field only, whatever the sizes, the batch, the cut of the
// input into pieces, the threads and the lane.
#pragma once

#include <cstdint>

#include "kernels/conv_geometry.h"
#include "kernels/linear/op.h"

namespace oasr::kernels {

// A weight [C_out, C_in, height, width] as checkpoints have it, packed as [C_out, height · width · C_in].
// `rows` fills row n: C_in · height · width floats in the checkpoint's order.
PackedWeight pack_conv2d(std::int64_t c_out, std::int64_t c_in, std::int64_t height, std::int64_t width,
                         DType storage, const PackedWeight::RowSource& rows);

struct Conv2dArgs {
  const float* x = nullptr;
  ConvGeometry geometry;                 // weight->k() == geometry.k()
  const PackedWeight* weight = nullptr;  // of pack_conv2d
  const float* bias = nullptr;           // [C_out] or null
  Activation activation = Activation::none;
  float* y = nullptr;                    // [geometry.rows(), C_out], row stride ldy; must not overlap x
  std::int64_t ldy = 0;
};
// Receptive fields are gathered in blocks of rows that stay in a thread's cache.
void conv2d(ExecContext& context, const Conv2dArgs& args);

// Reserves the scratch memory of every thread for weights of up to k columns.
void conv2d_reserve(ExecContext& context, std::int64_t k);

// The definition: plain loops, single thread.
void conv2d_reference(const Conv2dArgs& args);

}  // namespace oasr::kernels
