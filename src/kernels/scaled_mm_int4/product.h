// The operands of products with 4-bit weights, for the loop of scaled_mm/lane.h.
#pragma once

#include <cstdint>

#include "kernels/scaled_mm/lane.h"
#include "kernels/scaled_mm_int4/op.h"

namespace oasr::kernels {

// What a dot product reads: rows of s8 and the sums of their groups, panels as they are packed.
struct Int4Operands {
  const std::int8_t* a;  // row stride lda, zeros up to the padded K
  std::int64_t lda;
  const std::int32_t* a_sums;  // Σ a of each group; row stride groups
  const std::uint8_t* b;       // panels panel_stride apart
  std::int64_t panel_stride;
  std::int64_t groups, lines;  // lines of codes in a group
};

// Codes are unpacked in the loop of the dot product, however many rows there are: a mask and a shift for each
// tile of rows hide behind its multiplications. A pass that unpacks panels once for all rows was measured and
// did not pay (bench/results/cpu/int4-kernels-zen4.md).
//
// D, the dot product:
//   Simd, kMaxRows, kMaxPanels, kStreamRows, kChains<rows>     as the loop wants them
//   sum(a, count)                                              Σ a of `count` values, a multiple of kDepth
//   tile<kRows, kPanels, kChains>(operands, sums, stride)      the sums of a tile
template <class D>
class Int4Product {
 public:
  using Weight = PackedInt4Weight;
  using Simd = typename D::Simd;
  static constexpr int kMaxRows = D::kMaxRows, kMaxPanels = D::kMaxPanels, kStreamRows = D::kStreamRows;
  static constexpr bool kUnpacks = false;
  template <int kRows>
  static constexpr int kChains = D::template kChains<kRows>;

  // Producers need not give the sums of a row's groups: a pass over a row that is in the first-level cache
  // costs as much as the products of a channel or two.
  Int4Product(const Int4MMArgs& args, std::byte* scratch)
      : weight_(*args.weight),
        lda_(weight_.padded_k()),
        groups_(weight_.groups()),
        rows_(reinterpret_cast<std::int8_t*>(scratch)),
        sums_(reinterpret_cast<std::int32_t*>(rows_ + args.m * lda_)) {
    const std::int64_t k = weight_.k(), depth = lda_ / groups_;
    for (std::int64_t m = 0; m < args.m; ++m) {
      std::int8_t* row = rows_ + m * lda_;
      std::memcpy(row, args.a + m * args.lda, static_cast<std::size_t>(k));
      std::memset(row + k, 0, static_cast<std::size_t>(lda_ - k));
      for (std::int64_t g = 0; g < groups_; ++g) sums_[m * groups_ + g] = D::sum(row + g * depth, depth);
    }
  }

  // Float zeros belong to channels, and those have one group.
  const std::int32_t* row_sums() const { return sums_; }

  template <int kRows, int kPanels, int kChains, bool kUnpacked>
  [[gnu::always_inline]] void tile(std::int64_t m, std::int64_t panel, std::int32_t* sums,
                                   std::int64_t stride) const {
    static_assert(!kUnpacked);
    const Int4Operands operands{.a = rows_ + m * lda_,
                                .lda = lda_,
                                .a_sums = sums_ + m * groups_,
                                .b = weight_.panel(panel),
                                .panel_stride = weight_.panel_bytes(),
                                .groups = groups_,
                                .lines = weight_.group_lines()};
    D::template tile<kRows, kPanels, kChains>(operands, sums, stride);
  }

 private:
  const PackedInt4Weight& weight_;
  const std::int64_t lda_, groups_;
  std::int8_t* rows_;   // [M, lda_]
  std::int32_t* sums_;  // [M, groups_]
};

}  // namespace oasr::kernels
