// y = act(conv1d(x, W) + bias) + residual: kernel 3, padding 1, stride 1 or 2, time-major.
//
// It is a linear() whose rows overlap: output t reads the 3 · C_in contiguous floats that start at
// padded row t · stride, so no im2col buffer exists and linear's contract holds (fma chain over
// the taps in rising order, over the channels within a tap; all bits independent of T and threads).
#pragma once

#include <cstdint>
#include <functional>

#include "kernels/linear/op.h"
#include "tensor/matrix.h"

namespace oasr::kernels {

inline constexpr std::int64_t kConvTaps = 3;

// A weight [C_out, C_in, 3] as checkpoints have it, packed as [C_out, 3 · C_in] with column
// tap · C_in + channel. `rows` fills row n: C_in · 3 floats in the checkpoint's order.
PackedWeight pack_conv1d(std::int64_t c_out, std::int64_t c_in, DType storage,
                         const PackedWeight::RowSource& rows);

// Output frames for `frames` input frames: floor((frames - 1) / stride) + 1.
inline std::int64_t conv1d_frames(std::int64_t frames, std::int64_t stride) {
  return (frames - 1) / stride + 1;
}

struct Conv1dArgs {
  // [frames + 2, C_in], contiguous: the input is in rows 1 … frames. conv1d sets the padding, rows
  // 0 and frames + 1, to zero (zero_padding); so a producer writes its output straight into such a buffer.
  float* x = nullptr;
  std::int64_t frames = 0;          // >= 1
  std::int64_t stride = 1;          // 1 or 2
  const PackedWeight* weight = nullptr;  // of pack_conv1d
  const float* bias = nullptr;      // [C_out] or null
  Activation activation = Activation::none;
  const float* residual = nullptr;  // [conv1d_frames(), C_out], row stride ldr, or null
  std::int64_t ldr = 0;
  float* y = nullptr;               // [conv1d_frames(), C_out], row stride ldy; must not overlap x
  std::int64_t ldy = 0;
};
void conv1d(ExecContext& context, const Conv1dArgs& args);

// Zeros in the padding of such an input: the first and the last row of `padded`, which has no gaps between rows. On a
// GPU it is a kernel, not a memset, which would cut a section.
void zero_padding(ExecContext& context, Matrix padded);

}  // namespace oasr::kernels
