// Functions of single values over the rows of a matrix: an activation in place, and the gate of a GLU.
//
// Both are exact_math.h's, value by value: the same bits on every lane, for any shape and thread count.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "device/thread_pool.h"
#include "kernels/linear/activation.h"

namespace oasr::kernels {

// x[m, i] = act(x[m, i]), in place.
struct ActivateRowsArgs {
  float* x = nullptr;  // [M, D], row stride ldx
  std::int64_t ldx = 0;
  std::int64_t m = 0, d = 0;
  Activation activation = Activation::none;
};
void activate_rows(ExecContext& context, const ActivateRowsArgs& args);

// y[m, i] = x[m, i] · sigmoid(x[m, D + i]): the product of the first half of a row with the gate in the
// second, two roundings. A head of rows may lie before those, as a convolution needs them: it is copied, and y has it first.
struct GluArgs {
  const float* x = nullptr;  // [M, 2 · D], row stride ldx
  std::int64_t ldx = 0;
  std::int64_t m = 0, d = 0;
  float* y = nullptr;  // [head_rows + M, D], row stride ldy; without a head it may be x with the same stride
  std::int64_t ldy = 0;
  const float* head = nullptr;  // [head_rows, D], row stride ld_head: 0 repeats a row
  std::int64_t head_rows = 0, ld_head = 0;
};
void glu(ExecContext& context, const GluArgs& args);

// A row of the lane table: one instruction set's code for rows [m0, m1). Its glu gets arguments without a head.
struct ActivateLane {
  std::string_view name;  // "avx512"
  Isa isa;
  void (*activate_rows)(const ActivateRowsArgs& args, std::int64_t m0, std::int64_t m1);
  void (*glu)(const GluArgs& args, std::int64_t m0, std::int64_t m1);
};
std::span<const ActivateLane> activate_lanes();
// The lane that both use for an Isa: the highest with lane.isa <= isa.
const ActivateLane& activate_lane(Isa isa);

// The definitions: plain loops, single thread.
void activate_rows_reference(const ActivateRowsArgs& args);
void glu_reference(const GluArgs& args);

}  // namespace oasr::kernels
