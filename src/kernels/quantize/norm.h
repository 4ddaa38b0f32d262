// Layer normalisation that emits its output as int8 with a scale per row.
//
// Contract: bit-identical to (residual + x,) layer_norm() and quantize_per_token(), one after the
// other, and the same report of what is not finite; only the float output never exists.
#pragma once

#include "kernels/norm/op.h"
#include "kernels/quantize/op.h"

namespace oasr::kernels {

struct LayerNormQuantArgs {
  const float* x = nullptr;      // [M, D], row stride ldx
  std::int64_t ldx = 0;
  std::int64_t m = 0, d = 0;
  // With an addend, x + addend_scale · addend is what is normalised, and it is kept in `sum`
  // (one product and one sum, each rounded). Without one (null), x is.
  const float* addend = nullptr;  // [M, D], row stride ld_addend, or null
  std::int64_t ld_addend = 0;
  float addend_scale = 1.0f;
  float* sum = nullptr;           // [M, D], row stride ld_sum; may be x or addend
  std::int64_t ld_sum = 0;
  const float* gamma = nullptr;   // [D]
  const float* beta = nullptr;    // [D]
  float eps = 1e-5f;
  std::int8_t* q = nullptr;       // [M, D], row stride ldq
  std::int64_t ldq = 0;
  float* scale = nullptr;         // [M]
};
NotFinite layer_norm_quant(ExecContext& context, const LayerNormQuantArgs& args);

// Reserves the scratch memory of every thread for rows of d: layer_norm_quant() on them allocates
// nothing from the first call on.
void layer_norm_quant_reserve(ExecContext& context, std::int64_t d);

// A row of the lane table: one instruction set's code for rows [m0, m1).
struct LayerNormQuantLane {
  std::string_view name;  // "avx512"
  Isa isa;
  // normal: d floats of scratch, aligned to 64 bytes.
  NotFinite (*run)(const LayerNormQuantArgs& args, std::int64_t m0, std::int64_t m1, float* normal);
};
std::span<const LayerNormQuantLane> layer_norm_quant_lanes();
// The lane that layer_norm_quant() uses for an Isa.
const LayerNormQuantLane& layer_norm_quant_lane(Isa isa);

// The definition: the ops' references, one after the other.
NotFinite layer_norm_quant_reference(const LayerNormQuantArgs& args);

}  // namespace oasr::kernels
