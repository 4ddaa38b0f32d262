// int8 activations times int8 weights, exact in int32, then the epilogue of epilogue.h.
//
// Contract (every lane, any M, tile, split, thread count, instruction set: the same bits):
//   acc(m, n) = Σ a(m, k) · w(n, k) over the whole K, exact
// A row's result depends on that row only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/scaled_mm/epilogue.h"
#include "kernels/scaled_mm/packed_int8_weight.h"

namespace oasr::kernels {

// Weight: PackedInt8Weight here; the argument forms, the loop over blocks and the epilogue serve any
// weight whose products are exact in int32 (kernels/scaled_mm_int4).
template <class Weight>
struct ScaledMMArgsOf {
  const std::int8_t* a = nullptr;  // [M, K], row stride lda
  std::int64_t lda = 0;
  ActivationScale a_scale{};
  std::int64_t m = 0;
  const Weight* weight = nullptr;
  const float* bias = nullptr;     // [N] or null
  Activation activation = Activation::none;
};
using ScaledMMArgs = ScaledMMArgsOf<PackedInt8Weight>;

// y = alpha · act(a_scale · w_scale · acc + bias) + residual. One parallel_for; allocates nothing after
// scaled_mm_reserve(). out.y must not overlap a.
void scaled_mm(ExecContext& context, const ScaledMMArgs& args, const FloatOutput& out);

// The same, quantized for a consumer with a static input scale. Bit-identical to scaled_mm() without
// a residual, then quantize_static(). out.q must not overlap a.
NotFinite scaled_mm_quant(ExecContext& context, const ScaledMMArgs& args, const Int8Output& out);

// Quantizes x per token in the same loop and multiplies: bit-identical to quantize_per_token(), then
// scaled_mm() or scaled_mm_quant(), in one parallel_for, and the int8 rows are never seen. For a layer
// that nobody shares its input with. Reports the lowest row that either of the two reports. The output
// must not overlap x.
template <class Weight>
struct DynamicScaledMMArgsOf {
  const float* x = nullptr;           // [M, K], row stride ldx
  std::int64_t ldx = 0;
  std::int64_t m = 0;
  const float* smooth_inv = nullptr;  // [K] or null
  const Weight* weight = nullptr;
  const float* bias = nullptr;        // [N] or null
  Activation activation = Activation::none;
};
using DynamicScaledMMArgs = DynamicScaledMMArgsOf<PackedInt8Weight>;
NotFinite scaled_mm_dynamic(ExecContext& context, const DynamicScaledMMArgs& args,
                            const FloatOutput& out);
NotFinite scaled_mm_dynamic(ExecContext& context, const DynamicScaledMMArgs& args,
                            const Int8Output& out);

// The same with one calibrated scale: bit-identical to quantize_static(), then scaled_mm() or
// scaled_mm_quant(). Rows of x may overlap: a 1-D convolution over rows [time, C] is this product with
// ldx = stride · C and K = taps · C.
template <class Weight>
struct StaticScaledMMArgsOf {
  const float* x = nullptr;            // [M, K], row stride ldx
  std::int64_t ldx = 0;
  std::int64_t m = 0;
  const float* multiplier = nullptr;   // [K], of static_multiplier()
  const float* input_scale = nullptr;  // [1]
  const Weight* weight = nullptr;
  const float* bias = nullptr;         // [N] or null
  Activation activation = Activation::none;
};
using StaticScaledMMArgs = StaticScaledMMArgsOf<PackedInt8Weight>;
NotFinite scaled_mm_static(ExecContext& context, const StaticScaledMMArgs& args, const FloatOutput& out);
NotFinite scaled_mm_static(ExecContext& context, const StaticScaledMMArgs& args, const Int8Output& out);

// Reserves the scratch memory of every thread for weights of up to k columns.
void scaled_mm_reserve(ExecContext& context, std::int64_t k);

// A row of the lane table: one instruction set's code for a block of rows and all of its k. args and
// out are the block's own (row 0 is the block's first); panels [p0, p1) of the weight are computed.
// scratch: scaled_mm_scratch(args.m, K) bytes, aligned to 64.
template <class Weight>
struct ScaledMMLaneOf {
  std::string_view name;  // "avx512_vnni"
  Isa isa;
  void (*run)(const ScaledMMArgsOf<Weight>& args, const FloatOutput& out, std::int64_t p0,
              std::int64_t p1, std::byte* scratch);
  NotFinite (*run_quant)(const ScaledMMArgsOf<Weight>& args, const Int8Output& out, std::int64_t p0,
                         std::int64_t p1, std::byte* scratch);
};
using ScaledMMLane = ScaledMMLaneOf<PackedInt8Weight>;
std::span<const ScaledMMLane> scaled_mm_lanes();
// The lane that scaled_mm() and scaled_conv() use for an Isa.
const ScaledMMLane& scaled_mm_lane(Isa isa);
std::size_t scaled_mm_scratch(std::int64_t rows, std::int64_t k);

// The definitions: plain loops, single thread. They allocate.
void scaled_mm_reference(const ScaledMMArgs& args, const FloatOutput& out);
NotFinite scaled_mm_quant_reference(const ScaledMMArgs& args, const Int8Output& out);
NotFinite scaled_mm_dynamic_reference(const DynamicScaledMMArgs& args, const FloatOutput& out);
NotFinite scaled_mm_dynamic_reference(const DynamicScaledMMArgs& args, const Int8Output& out);
NotFinite scaled_mm_static_reference(const StaticScaledMMArgs& args, const FloatOutput& out);
NotFinite scaled_mm_static_reference(const StaticScaledMMArgs& args, const Int8Output& out);

}  // namespace oasr::kernels
