// y = alpha · act(x · Wᵀ + bias) + residual, with the weight packed once at bind.
//
// Contract (every lane, any M, tile, thread count, instruction set: the same bits):
//   acc(m, n) = fma chain over k = 0 … K-1 in rising order, one accumulator, starting at +0
//   y(m, n)   = act(acc + bias[n]) without a residual, else fma(alpha, act(acc + bias[n]), residual(m, n))
// A row's result depends on that row only. float16 and bfloat16 weights are widened exactly.
//
// Mixed precision (a GPU, ExecContext::arithmetic float16 or bfloat16): x and W are rounded to nearest even to 16 bits,
// their products are summed in float32 by the matrix units, 16 k at a time in rising order, in pieces of 128 k that
// start at +0 and are added to +0 in rising order; the rest is as above. The bits are those of the card, not of a processor; a row's result still depends on that row only, whatever
// M and the tile. A sum that is not finite, as it is when an operand was too large for its 16 bits, is reported with
// its row (Gpu::not_finite_row), also where an activation would hide it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "base/result.h"
#include "device/memory.h"
#include "device/thread_pool.h"
#include "kernels/linear/activation.h"
#include "tensor/tensor.h"

namespace oasr::kernels {

// A weight [N, K] in the layout of the kernels: panels of kPanel output channels, k-major.
class PackedWeight {
 public:
  static constexpr std::int64_t kPanel = 32;

  // Fills `out` (K floats) with row n of the weight.
  using RowSource = std::function<void(std::int64_t n, std::span<float> out)>;

  PackedWeight() = default;
  // storage: f32, f16 or bf16. Values that the storage can not hold are rounded to nearest even.
  static PackedWeight pack(std::int64_t n, std::int64_t k, DType storage, const RowSource& rows);
  // Moves the numbers to a GPU, whose kernels then are the only ones that can use them.
  void place(Gpu& gpu);
  bool placed() const { return placed_; }

  std::int64_t n() const { return n_; }
  std::int64_t k() const { return k_; }
  DType storage() const { return storage_; }
  std::size_t bytes() const { return data_.size(); }
  const std::byte* data() const { return data_.data(); }

  // Row n as floats (embedding lookup in a tied head); not of a weight on a GPU.
  void unpack_row(std::int64_t n, std::span<float> out) const;

 private:
  std::int64_t n_ = 0, k_ = 0;
  DType storage_ = DType::f32;
  bool placed_ = false;
  Memory data_;  // [ceil(N / kPanel)][K][kPanel], zero-padded
};

// The row stride, in floats, at which a matrix of `columns` is read fastest: rows start at cache
// lines, an odd number of them apart, so that the rows of a tile do not compete for one cache set
// (a stride that is a power of two costs some percent when there are many rows). Not required.
inline std::int64_t row_stride(std::int64_t columns) {
  constexpr std::int64_t kLine = 16;
  return ((columns + kLine - 1) / kLine | 1) * kLine;
}

struct LinearArgs {
  const float* x = nullptr;         // [M, K], row stride ldx
  std::int64_t ldx = 0;
  std::int64_t m = 0;
  const PackedWeight* weight = nullptr;
  const float* bias = nullptr;      // [N] or null
  Activation activation = Activation::none;
  const float* residual = nullptr;  // [M, N], row stride ldr, or null; may be y itself
  std::int64_t ldr = 0;
  float alpha = 1.0f;               // with a residual only
  float* y = nullptr;               // [M, N], row stride ldy; must not overlap x
  std::int64_t ldy = 0;
};

// Runs on context.pool with the lane of context.isa. No allocation after the first call of a
// thread with the largest K.
void linear(ExecContext& context, const LinearArgs& args);

// A row of the lane table: one instruction set's code for a block of rows and panels.
struct LinearLane {
  std::string_view name;  // "avx512"
  Isa isa;
  // Computes rows [m0, m1) × panels [p0, p1) of args.
  void (*run)(const LinearArgs& args, std::int64_t m0, std::int64_t m1, std::int64_t p0,
              std::int64_t p1);
};
std::span<const LinearLane> linear_lanes();
// The lane that linear() uses for an Isa: the highest with lane.isa <= isa.
const LinearLane& linear_lane(Isa isa);
// What runs where a context has a GPU, for reports; beside the names of the lanes.
inline constexpr std::string_view kLinearCudaName = "cuda";

// The definition: plain loops, single thread.
void linear_reference(const LinearArgs& args);

}  // namespace oasr::kernels
