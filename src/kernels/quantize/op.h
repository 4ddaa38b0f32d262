// Activations become int8: per row with a scale of its own, or with one calibrated scale.
//
// Contract (every lane, any M and thread count: the same bits), Q = 127, IEEE operations in float32:
//   per token  x'(k)  = x(k) · smooth_inv(k), or x(k) without a smoother
//              amax   = max(max |x'(k)|, 1e-8)
//              q(k)   = clamp(rint(x'(k) · (Q / amax)), -Q, Q), ties to even
//              scale  = amax / Q
//   static     q(k)   = clamp(rint(x(k) · multiplier(k)), -Q, Q)
// What is not finite is reported and never becomes a number: per token, a row with an x' that is
// NaN or infinite gets scale NaN and q = 0 (so that whatever is computed from it is NaN); static,
// such an x gets q = 0. Other rows are not affected. On a GPU the report goes to Gpu::not_finite_row() instead,
// and what is returned says nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "device/thread_pool.h"

namespace oasr::kernels {

inline constexpr float kInt8Greatest = 127.0f;  // Q
inline constexpr float kLeastAmax = 1e-8f;

// The lowest row that holds a NaN or an infinity; false when all values are finite.
struct [[nodiscard]] NotFinite {
  std::int64_t row = -1;
  explicit operator bool() const { return row >= 0; }
  // Keeps the lower row of the two.
  void merge(NotFinite other) {
    if (other && (row < 0 || other.row < row)) row = other.row;
  }
};

// The scales of an int8 activation [M, K]: one a row, or one for all rows.
class ActivationScale {
 public:
  ActivationScale() = default;
  static ActivationScale per_token(const float* scales) { return {scales, 1}; }   // [M]
  static ActivationScale per_tensor(const float* scale) { return {scale, 0}; }    // [1]
  // constexpr: GPU kernels call it, too.
  constexpr float of_row(std::int64_t m) const { return at_[m * step_]; }
  // The scales of rows m, m + 1, …
  ActivationScale from_row(std::int64_t m) const { return {at_ + m * step_, step_}; }

 private:
  ActivationScale(const float* at, std::int64_t step) : at_(at), step_(step) {}
  const float* at_ = nullptr;
  std::int64_t step_ = 0;
};

struct QuantizePerTokenArgs {
  const float* x = nullptr;           // [M, K], row stride ldx
  std::int64_t ldx = 0;
  std::int64_t m = 0, k = 0;
  const float* smooth_inv = nullptr;  // [K] or null
  std::int8_t* q = nullptr;           // [M, K], row stride ldq
  std::int64_t ldq = 0;
  float* scale = nullptr;             // [M]
};
NotFinite quantize_per_token(ExecContext& context, const QuantizePerTokenArgs& args);

// smooth_inv(k) · (1 / input_scale) for k < K, or 1 / input_scale when there is no smoother (an
// empty span): what a static quantize step multiplies by. Computed once, at bind.
std::vector<float> static_multiplier(std::span<const float> smooth_inv, float input_scale,
                                     std::int64_t k);

struct QuantizeStaticArgs {
  const float* x = nullptr;           // [M, K], row stride ldx
  std::int64_t ldx = 0;
  std::int64_t m = 0, k = 0;
  const float* multiplier = nullptr;  // [K], of static_multiplier
  std::int8_t* q = nullptr;           // [M, K], row stride ldq
  std::int64_t ldq = 0;
};
NotFinite quantize_static(ExecContext& context, const QuantizeStaticArgs& args);

// A row of the lane table: one instruction set's code for rows [m0, m1).
struct QuantizeLane {
  std::string_view name;  // "avx512"
  Isa isa;
  NotFinite (*per_token)(const QuantizePerTokenArgs& args, std::int64_t m0, std::int64_t m1);
  NotFinite (*fixed)(const QuantizeStaticArgs& args, std::int64_t m0, std::int64_t m1);
};
std::span<const QuantizeLane> quantize_lanes();
// The lane that quantize_*() use for an Isa.
const QuantizeLane& quantize_lane(Isa isa);

// The definitions: plain loops, single thread.
NotFinite quantize_per_token_reference(const QuantizePerTokenArgs& args);
NotFinite quantize_static_reference(const QuantizeStaticArgs& args);

}  // namespace oasr::kernels
