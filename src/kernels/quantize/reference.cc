#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/quantize/norm.h"

namespace oasr::kernels {
namespace {

std::int8_t rounded(float value) {
  return static_cast<std::int8_t>(std::clamp(std::rint(value), -kInt8Greatest, kInt8Greatest));
}

// Returns whether the row is finite.
bool quantize_row(const float* x, const float* smooth_inv, std::int64_t k, std::int8_t* q, float* scale) {
  const auto smoothed = [&](std::int64_t i) { return smooth_inv == nullptr ? x[i] : x[i] * smooth_inv[i]; };
  float amax = kLeastAmax;
  bool finite = true;
  for (std::int64_t i = 0; i < k; ++i) {
    finite = finite && std::isfinite(smoothed(i));
    amax = std::max(amax, std::fabs(smoothed(i)));
  }
  if (!finite) {
    std::fill_n(q, k, std::int8_t{0});
    *scale = std::nanf("");
    return false;
  }
  const float to_int8 = kInt8Greatest / amax;
  for (std::int64_t i = 0; i < k; ++i) q[i] = rounded(smoothed(i) * to_int8);
  *scale = amax / kInt8Greatest;
  return true;
}

}  // namespace

NotFinite quantize_per_token_reference(const QuantizePerTokenArgs& args) {
  NotFinite first;
  for (std::int64_t m = 0; m < args.m; ++m) {
    const bool finite = quantize_row(args.x + m * args.ldx, args.smooth_inv, args.k,
                                     args.q + m * args.ldq, args.scale + m);
    if (!finite) first.merge({m});
  }
  return first;
}

NotFinite quantize_static_reference(const QuantizeStaticArgs& args) {
  NotFinite first;
  for (std::int64_t m = 0; m < args.m; ++m) {
    for (std::int64_t i = 0; i < args.k; ++i) {
      const float x = args.x[m * args.ldx + i];
      args.q[m * args.ldq + i] = std::isfinite(x) ? rounded(x * args.multiplier[i]) : std::int8_t{0};
      if (!std::isfinite(x)) first.merge({m});
    }
  }
  return first;
}

NotFinite layer_norm_quant_reference(const LayerNormQuantArgs& args) {
  const float* x = args.x;
  std::int64_t ldx = args.ldx;
  if (args.addend != nullptr) {
    for (std::int64_t m = 0; m < args.m; ++m) {
      for (std::int64_t i = 0; i < args.d; ++i) {
        const float scaled = args.addend_scale * args.addend[m * args.ld_addend + i];
        args.sum[m * args.ld_sum + i] = args.x[m * args.ldx + i] + scaled;
      }
    }
    x = args.sum;
    ldx = args.ld_sum;
  }
  std::vector<float> normal(static_cast<std::size_t>(args.m * args.d));
  layer_norm_reference({.x = x, .ldx = ldx, .m = args.m, .d = args.d, .gamma = args.gamma,
                        .beta = args.beta, .eps = args.eps, .y = normal.data(), .ldy = args.d});
  return quantize_per_token_reference({.x = normal.data(), .ldx = args.d, .m = args.m, .k = args.d,
                                       .q = args.q, .ldq = args.ldq, .scale = args.scale});
}

}  // namespace oasr::kernels
