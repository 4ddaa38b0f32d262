// What the attention kernels get: the sequences of a launch, in memory of the device (Gpu::pass).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention/layout.h"
#include "kernels/cuda/launch.cuh"

namespace oasr::kernels::cuda {

struct Sequence {
  const float* q;           // [queries, heads · dim]
  const float* q_position;  // or null
  const float* q_shift;     // [heads · dim] or null
  const float* q_position_shift;
  float* out;
  float* weights;  // [heads, queries, length] or null
  const std::byte* kv;
  const std::byte* positions;
  std::int64_t ldq, ldo;
  std::int64_t rows, position_rows;  // of the layouts
  int queries, length;
  int causal;
  float scale;
  int first_item;  // items are blocks of queries of a head, numbered through all sequences
  int unused;      // 0, in place of padding (kernels/cuda/launch.cuh)

  // Numbers of a query, and of a second one; column: of all heads.
  __device__ float query(std::int64_t row, int column) const { return shifted(q, q_shift, row, column); }
  __device__ float second_query(std::int64_t row, int column) const {
    return shifted(q_position, q_position_shift, row, column);
  }
  __device__ float shifted(const float* from, const float* shift, std::int64_t row, int column) const {
    const float value = from[row * ldq + column];
    return shift == nullptr ? value : __fadd_rn(value, shift[column]);
  }

  // Positions that a query sees.
  __device__ int seen(int query) const {
    const int last = causal != 0 ? length - (queries - 1 - query) : length;
    return last < length ? last : length;
  }
};

static_assert(sizeof(Sequence) == 12 * 8 + 6 * 4, "without padding");

struct Sequences {
  static constexpr int kMost = 128;
  int count = 0, items = 0;
  int heads = 0, dim = 0;
  Sequence at[kMost];

  // `block`: queries of an item.
  void add(const AttentionArgs& args, int block) {
    heads = args.kv->heads;
    dim = args.kv->head_dim;
    const bool positions = args.positions != nullptr;
    at[count++] = {.q = args.q,
                   .q_position = positions ? args.q_position : nullptr,
                   .q_shift = args.q_shift,
                   .q_position_shift = positions ? args.q_position_shift : nullptr,
                   .out = args.out,
                   .weights = args.weights,
                   .kv = args.kv->data,
                   .positions = positions ? args.positions->data : nullptr,
                   .ldq = args.ldq,
                   .ldo = args.ldo,
                   .rows = KvLayout(*args.kv).rows,
                   .position_rows = positions ? KvLayout(*args.positions).rows : 0,
                   .queries = static_cast<int>(args.queries),
                   .length = static_cast<int>(args.kv->length),
                   .causal = args.causal,
                   .scale = args.scale,
                   .first_item = items,
                   .unused = 0};
    items += heads * static_cast<int>(divide_up(args.queries, block));
  }
  const Sequences* pass(Gpu& gpu) const {
    const std::size_t bytes = offsetof(Sequences, at) + sizeof(Sequence) * static_cast<std::size_t>(count);
    return static_cast<const Sequences*>(gpu.pass(this, bytes));
  }
  // The sequence that an item belongs to: a guess, right where sequences have the same length, all of which is loaded
  // beside what tells whether it is right; or what is searched for.
  __device__ Sequence of(int item) const {
    const int guess = guess_of(item);
    const Sequence guessed = at[guess];
    return is_in(item, guessed.first_item, guess) ? guessed : at[search(item)];
  }
  __device__ int number_of(int item) const {
    const int guess = guess_of(item);
    return is_in(item, at[guess].first_item, guess) ? guess : search(item);
  }

 private:
  __device__ int guess_of(int item) const {
    const float share = (static_cast<float>(item) + 0.5f) * static_cast<float>(count);
    return min(static_cast<int>(__fdividef(share, static_cast<float>(items))), count - 1);
  }
  __device__ bool is_in(int item, int first, int number) const {
    return first <= item && item < (number + 1 < count ? at[number + 1].first_item : items);
  }
  __device__ int search(int item) const {
    int low = 0, high = count;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (at[middle].first_item <= item ? low : high) = middle;
    }
    return low;
  }
};

// The part of an item's number that is left in its sequence.
struct Place {
  int head, query;  // the first query
};
__device__ inline Place place(const Sequence& sequence, int item, int block) {
  const int blocks = (sequence.queries + block - 1) / block;
  const int number = item - sequence.first_item;
  return {number / blocks, number % blocks * block};
}

}  // namespace oasr::kernels::cuda
