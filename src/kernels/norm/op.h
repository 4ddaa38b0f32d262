// Layer normalisation over channels, float32, canonical reduction tree (docs/numerics.md).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "device/thread_pool.h"
#include "kernels/linear/activation.h"

namespace oasr::kernels {

// y[m] = act((x[m] - mean) / sqrt(var + eps) · gamma + beta), biased variance; x and y are [M, D] with
// row strides; y may be x. The same bits on every lane, for any M and thread count, and those of activate_rows()
// behind a norm without an activation.
struct LayerNormArgs {
  const float* x = nullptr;
  std::int64_t ldx = 0;
  std::int64_t m = 0, d = 0;
  const float* gamma = nullptr;
  const float* beta = nullptr;
  float eps = 1e-5f;
  float* y = nullptr;
  std::int64_t ldy = 0;
  Activation activation = Activation::none;
};
void layer_norm(ExecContext& context, const LayerNormArgs& args);

// A row of the lane table: one instruction set's code for rows [m0, m1), which leaves the activation to layer_norm().
struct LayerNormLane {
  std::string_view name;  // "avx512"
  Isa isa;
  void (*run)(const LayerNormArgs& args, std::int64_t m0, std::int64_t m1);
};
std::span<const LayerNormLane> layer_norm_lanes();
// The lane that layer_norm() uses for an Isa: the highest with lane.isa <= isa.
const LayerNormLane& layer_norm_lane(Isa isa);

// The definition: plain loops, single thread.
void layer_norm_reference(const LayerNormArgs& args);

}  // namespace oasr::kernels
