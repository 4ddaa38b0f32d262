// How few_queries() of few_queries.cuh is laid out in the shared memory that blocks of a card can have.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/attention/layout.h"

namespace oasr::kernels::cuda {

inline constexpr int kFewStages = 3;

struct FewPlan {
  int tile;      // positions of a tile of values, whole panels
  int stride;    // floats of a row of numerators: whole panels
  float* outer;  // scores or numerators in device memory, [blocks, queries, stride]; or null
};

// Where scores and numerators are.
enum class Rows {
  inside,   // scores computed by the block, numerators in shared memory
  handed,   // scores come from few_scores(), numerators in shared memory
  outside,  // scores computed by the block, numerators in device memory
};

// Numbers of a column of a panel of values in shared memory, each of `bytes`: eight threads that load 16 bytes of
// neighbouring columns each meet no bank twice.
constexpr int few_column(std::size_t bytes) { return static_cast<int>(kKeys + 16 / static_cast<std::int64_t>(bytes)); }

// Bytes of dynamic shared memory of a block of `queries`, of values that are `bytes` long.
constexpr std::size_t few_shared(std::size_t bytes, const FewPlan& plan, Rows rows, int queries, int dim) {
  const auto panels = static_cast<std::size_t>(plan.tile / kKeys), channels = static_cast<std::size_t>(dim);
  const std::size_t values = bytes * kFewStages * panels * channels * static_cast<std::size_t>(few_column(bytes));
  const std::size_t numerators = rows == Rows::outside ? 0 : sizeof(float) * static_cast<std::size_t>(plan.stride);
  return values + static_cast<std::size_t>(queries) * (numerators + sizeof(float) * 2 * channels);
}

struct FewLayout {
  FewPlan plan;
  Rows rows;
};

// longest: positions of a sequence, at most. hands_over: whether few_scores() may compute scores that go inside.
// most: bytes of shared memory. Where they are few, values come in smaller tiles, which is no matter of bits, and then
// numerators go outside.
inline FewLayout few_layout(std::size_t bytes, int queries, int dim, std::int64_t longest, bool hands_over,
                            std::size_t most) {
  constexpr int kColumns = static_cast<int>(64 * 128 / kKeys);  // of panels, of a tile
  constexpr std::int64_t kStep = 64;  // of the stride: the steps of a decoder seldom change it
  constexpr std::size_t kNumerators = 64 << 10;  // bytes of shared memory that they may take
  const int stride = static_cast<int>((longest + kStep - 1) / kStep * kStep);
  const auto with = [&](Rows rows) {
    int panels = std::max(1, kColumns / dim);
    FewLayout layout{.plan = {.tile = 0, .stride = stride, .outer = nullptr}, .rows = rows};
    for (;; panels /= 2) {
      layout.plan.tile = panels * static_cast<int>(kKeys);
      if (panels == 1 || few_shared(bytes, layout.plan, rows, queries, dim) <= most) return layout;
    }
  };
  const std::size_t numerators = sizeof(float) * static_cast<std::size_t>(stride) * static_cast<std::size_t>(queries);
  if (numerators <= kNumerators) {
    const FewLayout layout = with(hands_over ? Rows::handed : Rows::inside);
    if (few_shared(bytes, layout.plan, layout.rows, queries, dim) <= most) return layout;
  }
  return with(Rows::outside);
}

}  // namespace oasr::kernels::cuda
