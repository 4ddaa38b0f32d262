// The forms of op.h for any kind of weight: int8 rows that are there, and rows of floats that are quantized
// block by block.
#pragma once

#include "kernels/scaled_mm/blocks.h"

namespace oasr::kernels {

// Rows that are there already.
template <class Weight>
NotFinite point_to(const ScaledMMArgsOf<Weight>& all, std::int64_t m0, ScaledMMArgsOf<Weight>& block) {
  block.a = all.a + m0 * all.lda;
  block.a_scale = all.a_scale.from_row(m0);
  return {};
}

template <class Weight, class Output>
NotFinite multiply(ExecContext& context, const ScaledMMArgsOf<Weight>& args, const Output& out) {
  return multiply_blocks(context, args, out, false,
                         [&](std::int64_t m0, std::int64_t, const BlockScratch&,
                             ScaledMMArgsOf<Weight>& block) { return point_to(args, m0, block); });
}

// Multiplies int8 rows that exist only in scratch memory: quantize(m0, count, scratch, scale) makes those
// of a block from m0 on, sets their scale and reports from row 0 = m0.
template <class Weight, class Output, class Quantize>
NotFinite quantize_and_multiply(ExecContext& context, const ScaledMMArgsOf<Weight>& args, const Output& out,
                                Quantize quantize) {
  return multiply_blocks(
      context, args, out, true,
      [&](std::int64_t m0, std::int64_t count, const BlockScratch& scratch, ScaledMMArgsOf<Weight>& block) {
        block.a = scratch.a;
        block.lda = scratch.lda;
        return quantize(m0, count, scratch, block.a_scale);
      });
}

template <class Weight, class Output>
NotFinite multiply(ExecContext& context, const DynamicScaledMMArgsOf<Weight>& args, const Output& out) {
  const auto quantize = quantize_lane(context.isa).per_token;
  return quantize_and_multiply(
      context,
      ScaledMMArgsOf<Weight>{
          .m = args.m, .weight = args.weight, .bias = args.bias, .activation = args.activation},
      out, [&](std::int64_t m0, std::int64_t count, const BlockScratch& scratch, ActivationScale& scale) {
        scale = ActivationScale::per_token(scratch.scale);
        return quantize({.x = args.x + m0 * args.ldx,
                         .ldx = args.ldx,
                         .m = count,
                         .k = args.weight->k(),
                         .smooth_inv = args.smooth_inv,
                         .q = scratch.a,
                         .ldq = scratch.lda,
                         .scale = scratch.scale},
                        0, count);
      });
}

template <class Weight, class Output>
NotFinite multiply(ExecContext& context, const StaticScaledMMArgsOf<Weight>& args, const Output& out) {
  const auto quantize = quantize_lane(context.isa).fixed;
  return quantize_and_multiply(
      context,
      ScaledMMArgsOf<Weight>{
          .m = args.m, .weight = args.weight, .bias = args.bias, .activation = args.activation},
      out, [&](std::int64_t m0, std::int64_t count, const BlockScratch& scratch, ActivationScale& scale) {
        scale = ActivationScale::per_tensor(args.input_scale);
        return quantize({.x = args.x + m0 * args.ldx,
                         .ldx = args.ldx,
                         .m = count,
                         .k = args.weight->k(),
                         .multiplier = args.multiplier,
                         .q = scratch.a,
                         .ldq = scratch.lda},
                        0, count);
      });
}

}  // namespace oasr::kernels
