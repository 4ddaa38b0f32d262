#include "base/check.h"
#include "kernels/lane_choice.h"
#include "kernels/scaled_mm/blocks.h"

namespace oasr::kernels {

const ScaledMMLane& scaled_mm_lane(Isa isa) { return choose_lane(scaled_mm_lanes(), isa); }

std::size_t scaled_mm_scratch(std::int64_t rows, std::int64_t k) {
  // Rows widened to s16, K padded (the matrix unit takes whole tiles of 16 rows), a widened panel, and
  // the sums of four panels.
  const std::int64_t tiles = (rows + 15) / 16 * 16;
  constexpr std::int64_t kDepth = PackedInt8Weight::kDepth;
  const std::int64_t depth = (k + kDepth - 1) / kDepth * kDepth;
  return static_cast<std::size_t>((tiles + PackedInt8Weight::kPanel) * depth) * sizeof(std::int16_t) +
         static_cast<std::size_t>(tiles * 4 * PackedInt8Weight::kPanel) * sizeof(std::int32_t);
}

BlockSplit block_split(std::int64_t m, const PackedInt8Weight& weight, int threads, bool costly_rows) {
  const std::int64_t rows = std::min(m, block_rows(weight.k())), panels = weight.panels();
  if (threads == 1) return {rows, panels};
  constexpr std::int64_t kGroup = 4;        // panels that a lane reads at once
  constexpr std::int64_t kLeast = 128'000;  // multiplications; below, an item is not worth a hand-out
  const auto groups = [](std::int64_t p) { return (p + kGroup - 1) / kGroup * kGroup; };
  const std::int64_t blocks = (m + rows - 1) / rows;
  // Items across for about four (or one, if each prepares its rows at a cost) for each thread.
  const std::int64_t wanted = (costly_rows ? 1 : 4) * threads;
  const std::int64_t across = std::max<std::int64_t>(1, (wanted + blocks - 1) / blocks);
  const std::int64_t least = kLeast / (rows * weight.k() * PackedInt8Weight::kPanel) + 1;
  return {rows, std::min(panels, groups(std::max((panels + across - 1) / across, least)))};
}

void scaled_mm_reserve(ExecContext& context, std::int64_t k) {
  std::size_t most = 0;  // blocks of a smaller K have more rows
  for (std::int64_t smaller = 1; smaller <= k; ++smaller) {
    most = std::max(most, BlockScratch::bytes(block_rows(smaller), smaller));
  }
  for (int thread = 0; thread < context.pool->threads(); ++thread) context.pool->scratch(thread, most);
}

namespace {

// Rows that are there already.
NotFinite point_to(const ScaledMMArgs& all, std::int64_t m0, ScaledMMArgs& block) {
  block.a = all.a + m0 * all.lda;
  block.a_scale = all.a_scale.from_row(m0);
  return {};
}

template <class Output>
NotFinite multiply(ExecContext& context, const ScaledMMArgs& args, const Output& out) {
  return multiply_blocks(context, args, out, false,
                         [&](std::int64_t m0, std::int64_t, const BlockScratch&, ScaledMMArgs& block) {
                           return point_to(args, m0, block);
                         });
}

// Multiplies int8 rows that exist only in scratch memory: quantize(m0, count, scratch, scale) makes those
// of a block from m0 on, sets their scale and reports from row 0 = m0.
template <class Output, class Quantize>
NotFinite quantize_and_multiply(ExecContext& context, const ScaledMMArgs& args, const Output& out,
                                Quantize quantize) {
  return multiply_blocks(
      context, args, out, true,
      [&](std::int64_t m0, std::int64_t count, const BlockScratch& scratch, ScaledMMArgs& block) {
        block.a = scratch.a;
        block.lda = scratch.lda;
        return quantize(m0, count, scratch, block.a_scale);
      });
}

template <class Output>
NotFinite multiply(ExecContext& context, const DynamicScaledMMArgs& args, const Output& out) {
  const auto quantize = quantize_lane(context.isa).per_token;
  return quantize_and_multiply(
      context, {.m = args.m, .weight = args.weight, .bias = args.bias, .activation = args.activation}, out,
      [&](std::int64_t m0, std::int64_t count, const BlockScratch& scratch, ActivationScale& scale) {
        scale = ActivationScale::per_token(scratch.scale);
        return quantize({.x = args.x + m0 * args.ldx, .ldx = args.ldx, .m = count, .k = args.weight->k(),
                         .smooth_inv = args.smooth_inv, .q = scratch.a, .ldq = scratch.lda,
                         .scale = scratch.scale},
                        0, count);
      });
}

template <class Output>
NotFinite multiply(ExecContext& context, const StaticScaledMMArgs& args, const Output& out) {
  const auto quantize = quantize_lane(context.isa).fixed;
  return quantize_and_multiply(
      context, {.m = args.m, .weight = args.weight, .bias = args.bias, .activation = args.activation}, out,
      [&](std::int64_t m0, std::int64_t count, const BlockScratch& scratch, ActivationScale& scale) {
        scale = ActivationScale::per_tensor(args.input_scale);
        return quantize({.x = args.x + m0 * args.ldx, .ldx = args.ldx, .m = count, .k = args.weight->k(),
                         .multiplier = args.multiplier, .q = scratch.a, .ldq = scratch.lda},
                        0, count);
      });
}

}  // namespace

void scaled_mm(ExecContext& context, const ScaledMMArgs& args, const FloatOutput& out) {
  CHECK(!multiply(context, args, out), "the float output reports nothing");
}

NotFinite scaled_mm_quant(ExecContext& context, const ScaledMMArgs& args, const Int8Output& out) {
  return multiply(context, args, out);
}

NotFinite scaled_mm_dynamic(ExecContext& context, const DynamicScaledMMArgs& args,
                            const FloatOutput& out) {
  return multiply(context, args, out);
}
NotFinite scaled_mm_dynamic(ExecContext& context, const DynamicScaledMMArgs& args,
                            const Int8Output& out) {
  return multiply(context, args, out);
}

NotFinite scaled_mm_static(ExecContext& context, const StaticScaledMMArgs& args, const FloatOutput& out) {
  return multiply(context, args, out);
}
NotFinite scaled_mm_static(ExecContext& context, const StaticScaledMMArgs& args, const Int8Output& out) {
  return multiply(context, args, out);
}

}  // namespace oasr::kernels
