// The loop over blocks of rows and panels that all products with int8 activations share.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/quantize/first_row.h"
#include "kernels/scaled_mm/op.h"

namespace oasr::kernels {

// Rows that a lane prepares at once: a multiple of every lane's tile. They stay in the second-level
// cache, also when widened to s16, and all weights are read again for every block.
inline std::int64_t block_rows(std::int64_t k) {
  constexpr std::int64_t kElements = 98'304, kStep = 48, kMost = 288;
  return std::clamp(kElements / k / kStep * kStep, kStep, kMost);
}

// The lane of a kind of weight for an Isa, and the scratch memory that its lanes need for a block.
template <class Weight>
struct ScaledMMLanes;
template <>
struct ScaledMMLanes<PackedInt8Weight> {
  static const ScaledMMLane& lane(Isa isa) { return scaled_mm_lane(isa); }
  static std::size_t scratch(std::int64_t rows, std::int64_t k) { return scaled_mm_scratch(rows, k); }
};

// A thread's scratch memory for one block of `rows`.
struct BlockScratch {
  template <class Weight>
  static std::size_t bytes(std::int64_t rows, std::int64_t k) {
    return prepared<Weight>(rows, k) + gathered(rows, k) + static_cast<std::size_t>(rows) * sizeof(float);
  }
  template <class Weight>
  static BlockScratch in(std::byte* memory, std::int64_t rows, std::int64_t k) {
    std::byte* a = memory + prepared<Weight>(rows, k);
    return {.lane = memory, .a = reinterpret_cast<std::int8_t*>(a), .lda = stride(k),
            .scale = reinterpret_cast<float*>(a + gathered(rows, k))};
  }

  std::byte* lane;
  std::int8_t* a;    // [rows, K], row stride lda: for rows that do not exist as int8 yet
  std::int64_t lda;
  float* scale;      // [rows]

 private:
  static std::int64_t stride(std::int64_t k) { return (k + 63) / 64 * 64; }
  static std::size_t gathered(std::int64_t rows, std::int64_t k) {
    return static_cast<std::size_t>(rows * stride(k));
  }
  template <class Weight>
  static std::size_t prepared(std::int64_t rows, std::int64_t k) {
    return (ScaledMMLanes<Weight>::scratch(rows, k) + 63) / 64 * 64;
  }
};

// How a product is cut into items: big enough to hide the hand-out and the preparation of the rows,
// small enough that a thread that lost its core delays the others little.
struct BlockSplit {
  std::int64_t rows;    // of an item
  std::int64_t panels;  // of an item
};
// Of m rows and `panels` panels, K deep.
BlockSplit block_split(std::int64_t m, std::int64_t panels, std::int64_t k, int threads, bool costly_rows);

// Reserves the scratch memory of every thread for weights of up to k columns.
template <class Weight>
void reserve_blocks(ExecContext& context, std::int64_t k) {
  std::size_t most = 0;  // blocks of a smaller K have more rows
  for (std::int64_t smaller = 1; smaller <= k; ++smaller) {
    most = std::max(most, BlockScratch::bytes<Weight>(block_rows(smaller), smaller));
  }
  for (int thread = 0; thread < context.pool->threads(); ++thread) context.pool->scratch(thread, most);
}

inline FloatOutput from_row(FloatOutput out, std::int64_t m) {
  out.y += m * out.ldy;
  if (out.residual != nullptr) out.residual += m * out.ldr;
  return out;
}
inline Int8Output from_row(Int8Output out, std::int64_t m) {
  out.q += m * out.ldq;
  return out;
}

// Multiplies m rows. load(m0, count, scratch, args) sets a, lda and a_scale of `args` to rows
// m0 … m0 + count - 1 and returns what of them is not finite (row 0 is m0).
template <class Weight, class Output, class Load>
NotFinite multiply_blocks(ExecContext& context, const ScaledMMArgsOf<Weight>& args, const Output& out,
                          bool costly_rows, Load load) {
  if (args.m == 0) return {};
  const ScaledMMLaneOf<Weight>& lane = ScaledMMLanes<Weight>::lane(context.isa);
  const std::int64_t k = args.weight->k(), panels = args.weight->panels();
  const BlockSplit item = block_split(args.m, panels, k, context.pool->threads(), costly_rows);
  const std::int64_t across = (panels + item.panels - 1) / item.panels;
  const std::int64_t down = (args.m + item.rows - 1) / item.rows;
  FirstRow first;
  context.pool->parallel_for(across * down, [&](std::int64_t i, int thread) {
    const std::int64_t m0 = i / across * item.rows, p0 = i % across * item.panels;
    const std::int64_t p1 = std::min(panels, p0 + item.panels);
    ScaledMMArgsOf<Weight> block = args;
    block.m = std::min(item.rows, args.m - m0);
    const std::size_t bytes = BlockScratch::bytes<Weight>(item.rows, k);
    const auto scratch = BlockScratch::in<Weight>(context.pool->scratch(thread, bytes).data(), item.rows, k);
    NotFinite found = load(m0, block.m, scratch, block);
    if constexpr (std::is_same_v<Output, Int8Output>) {
      found.merge(lane.run_quant(block, from_row(out, m0), p0, p1, scratch.lane));
    } else {
      lane.run(block, from_row(out, m0), p0, p1, scratch.lane);
    }
    if (found) first.merge({m0 + found.row});
  });
  return first.value();
}

}  // namespace oasr::kernels
