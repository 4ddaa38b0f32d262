// What happens to rows between products: looked up, gathered, shifted and scaled, taken from the host and
// back.
//
// Contract (host and GPU: the same bits), one IEEE operation each:
//   embed_rows        y(i) = table(token[i]) · scale + positions(position[i])     two roundings
//   shift_scale_rows  y(m) = (x(m) + shift) · scale                               two roundings
// A scale of 1 changes no bit; without positions or a shift nothing is added. The others move numbers
// unchanged.
//
// Tokens and numbers of rows are host memory on every device and may be changed when the call returns.
#pragma once

#include <cstdint>
#include <span>

#include "device/thread_pool.h"
#include "kernels/linear/op.h"
#include "kernels/quantize/op.h"
#include "tensor/matrix.h"

namespace oasr::kernels {

struct EmbedRowsArgs {
  const PackedWeight* table = nullptr;   // [V, D]
  std::span<const std::int32_t> tokens;  // in [0, V)
  float scale = 1.0f;
  std::span<const std::int32_t> positions;  // rows of position_table, one a token; or empty
  ConstMatrix position_table;               // [P, D]
  Matrix y;                                 // [tokens, D]
};
void embed_rows(ExecContext& context, const EmbedRowsArgs& args);

// y(i) = x(rows[i]), and zeros where rows[i] is kZeroRow. y must not overlap x.
inline constexpr std::int32_t kZeroRow = -1;
void gather_rows(ExecContext& context, ConstMatrix x, std::span<const std::int32_t> rows, Matrix y);

// shift: [D] or null; scale: [D], or null and `factor` holds for all. y may be x.
struct ShiftScaleRowsArgs {
  ConstMatrix x;  // [M, D]
  const float* shift = nullptr;
  const float* scale = nullptr;
  float factor = 1.0f;
  Matrix y;  // [M, D]
};
void shift_scale_rows(ExecContext& context, const ShiftScaleRowsArgs& args);

// Channels of frames (a log-mel window, [D, M] on the host) as the rows of y [M, D].
void transpose_in(ExecContext& context, std::span<const float> x, Matrix y);

// Rows as `out` on the host, [M, D] without gaps. On the host `out` may be the memory of x itself.
// Waits for all that a GPU was given before.
void to_host(ExecContext& context, ConstMatrix x, std::span<float> out);

// Looks for NaN and infinity. On a GPU nothing is returned: the row goes to gpu.not_finite_row().
NotFinite first_not_finite(ExecContext& context, ConstMatrix x);

}  // namespace oasr::kernels
