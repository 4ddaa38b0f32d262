// Attention of 64 queries of one head at a time: an encoder, a prompt.
//
// Two products on register tiles, both of operands in shared memory:
//   1. scores [64 queries, 64 positions] of every tile of positions, chains over the depth; they go to device
//      memory, [position][64 queries], while a thread keeps the greatest of its queries;
//   2. tile after tile of scores comes back, becomes numerators, and is multiplied by the tile of values: 64
//      columns of the output, whose chains run through all tiles.
// What is multiplied next is copied to the other of two stages meanwhile. Blocks live on and take item after
// item, so that the scores need memory for the blocks that run, not for all.
#pragma once

#include "kernels/attention/few_queries.cuh"

namespace oasr::kernels::cuda {

inline constexpr int kManyThreads = 128;
inline constexpr int kTile = 64;  // queries, positions, depth and columns

// Numbers of a stage: a tile of keys [depth][positions], or the panels of values of as many columns.
template <class T>
inline constexpr int kStage = kTile / static_cast<int>(kKeys) * kTile* kColumn<T>;

// Bytes of shared memory. depth: dim, or twice that with positions.
template <class T>
constexpr std::size_t many_shared(int depth) {
  const int first = depth > 2 * kTile ? depth : 2 * kTile;
  return sizeof(float) * first * kTile + 2 * sizeof(T) * kStage<T>;
}

// A thread has eight queries, 4 · across + {0 … 3} and 32 more, of scores the four positions from 4 · down
// on, and of outputs the columns down + {0, 16, 32, 48}: what a warp loads at a time lies in different banks.
struct TilePlace {
  int across, down;
};
__device__ inline TilePlace tile_place() {
  return {static_cast<int>(threadIdx.x % 8), static_cast<int>(threadIdx.x / 8)};
}
__device__ inline int tile_query(int across, int i) { return 4 * across + i % 4 + i / 4 * 32; }

template <class T>
__device__ void multiply_step(const float* a, const T* b, float (&sum)[8][4]) {
  const auto [across, down] = tile_place();
  const Four low = load_four(a + 4 * across), high = load_four(a + 32 + 4 * across),
             right = load_four(b + 4 * down);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      sum[i][j] = __fmaf_rn(low.at[i], right.at[j], sum[i][j]);
      sum[i + 4][j] = __fmaf_rn(high.at[i], right.at[j], sum[i + 4][j]);
    }
  }
}

// sum += queries · keys, chains over the depth in rising order. a: [depth][kTile], b: [depth][kTile].
template <class T>
__device__ void multiply(const float* a, const T* b, int count, float (&sum)[8][4]) {
  int k = 0;
  for (; k + 8 <= count; k += 8) {
#pragma unroll
    for (int i = 0; i < 8; ++i) multiply_step(a + (k + i) * kTile, b + (k + i) * kTile, sum);
  }
  for (; k < count; ++k) multiply_step(a + k * kTile, b + k * kTile, sum);
}

// sum += numerators · values, chains over positions in rising order. p: [position][kTile]; v: panels [kTile
// columns] [kColumn]. kSome: not every query sees every position, query n sees those below seen_first + n.
template <bool kSome, class T>
__device__ void multiply_values(const float* p, const T* v, int count, int seen_first, float (&sum)[8][4]) {
  const auto [across, down] = tile_place();
  const auto add = [&](const float* at, const Four(&right)[4], int k, int position) {
    const Four low = load_four(at + k * kTile + 4 * across),
               high = load_four(at + k * kTile + 32 + 4 * across);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (kSome && position + k >= seen_first + tile_query(across, i)) continue;
#pragma unroll
      for (int j = 0; j < 4; ++j)
        sum[i][j] = __fmaf_rn(i < 4 ? low.at[i] : high.at[i - 4], right[j].at[k], sum[i][j]);
    }
  };
#pragma unroll 2
  for (int position = 0; position < count; position += 4) {
    const T* from = v + position / kKeys * kTile * kColumn<T> + down * kColumn<T> + position % kKeys;
    const float* at = p + position * kTile;
    const Four right[4] = {load_four(from), load_four(from + 16 * kColumn<T>),
                           load_four(from + 32 * kColumn<T>), load_four(from + 48 * kColumn<T>)};
    if (position + 4 <= count) {
#pragma unroll
      for (int k = 0; k < 4; ++k) add(at, right, k, position);
    } else {
#pragma unroll
      for (int k = 0; k < 3; ++k) {
        if (position + k < count) add(at, right, k, position);
      }
    }
  }
}

// Depth [first, first + count) of the keys of positions [j0, j0 + kTile), as far as there are panels up to
// `end`.
template <class T>
__device__ void stage_keys(T* stage, const T* keys, int dim, int j0, int end, int first, int count) {
  constexpr int kInCopy = 16 / sizeof(T), kInPanel = kKeys / kInCopy, kInRow = kTile / kInCopy;
  const int part = threadIdx.x % kInPanel * kInCopy, panel = threadIdx.x / kInPanel % (kTile / kKeys);
  if (j0 + panel * kKeys >= end) return;
  const T* from = keys + std::int64_t{j0 / kKeys + panel} * kKeys * dim + first * kKeys + part;
  T* to = stage + panel * kKeys + part;
#pragma unroll
  for (int i = 0; i < kTile; i += kManyThreads / kInRow) {
    const int d = i + static_cast<int>(threadIdx.x) / kInRow;
    if (d < count) copy_async(to + d * kTile, from + d * kKeys);
  }
}

// Columns [first, first + kTile) of the values of positions [j0, j0 + kTile), as far as there are panels up
// to `end`.
template <class T>
__device__ void stage_columns(T* stage, const T* values, int dim, int j0, int end, int first) {
  constexpr int kInCopy = 16 / sizeof(T), kInColumn = static_cast<int>(kKeys) / kInCopy;
  const int part = threadIdx.x % kInColumn * kInCopy, column = threadIdx.x / kInColumn;
  constexpr int kAtOnce = kManyThreads / kInColumn;  // columns
#pragma unroll
  for (int panel = 0; panel < kTile / kKeys; ++panel) {
    if (j0 + panel * kKeys >= end) return;
    const T* from = values + (std::int64_t{j0} + panel * kKeys) * dim + first * kKeys + part;
    T* to = stage + panel * kTile * kColumn<T> + part;
#pragma unroll
    for (int c = 0; c < kTile; c += kAtOnce) {
      if (first + c + column < dim) copy_async(to + (c + column) * kColumn<T>, from + (c + column) * kKeys);
    }
  }
}

// What a block knows of its item.
template <class T>
struct ManyWork {
  Sequence s;
  int head, q0, dim;
  int end;  // positions that the last query of the block sees
  const T* keys;
  const T* values;
  const T* position_keys;
  float* scores;    // [whole tiles of positions][kTile queries], device memory
  float* left;      // shared: queries [depth][kTile]; then two tiles of numerators
  T* right;         // shared: two stages
  float* greatest;  // shared, [kTile]
  float* sums;      // shared, [kTile]

  __device__ int seen(int n) const { return min(s.seen(q0 + n), end); }
};

// Turned: a warp reads four columns of eight rows at a time, a compromise between lines of the cache that it
// touches and banks of shared memory that it writes. A thread has two rows.
template <class T>
__device__ void gather_queries(const ManyWork<T>& work) {
  const int n = static_cast<int>(threadIdx.x) / 32 * 16 + static_cast<int>(threadIdx.x) % 32 / 4;
  const bool low = work.q0 + n < work.s.queries, high = work.q0 + n + 8 < work.s.queries;
  for (int kind = 0; kind < (work.position_keys != nullptr ? 2 : 1); ++kind) {
    const int first = work.head * work.dim;
    const float* from = (kind == 0 ? work.s.q : work.s.q_position) + first;
    const float* shift = kind == 0 ? work.s.q_shift : work.s.q_position_shift;
    if (shift != nullptr) shift += first;
    const float* low_row = from + (work.q0 + n) * work.s.ldq;
    const float* high_row = low_row + 8 * work.s.ldq;
    float* to = work.left + kind * work.dim * kTile + n;
    const auto value = [&](bool there, const float* row, int d) {
      if (!there) return 0.0f;
      return shift == nullptr ? row[d] : __fadd_rn(row[d], shift[d]);
    };
#pragma unroll 8
    for (int d = threadIdx.x % 4; d < work.dim; d += 4) {
      to[d * kTile] = value(low, low_row, d);
      to[d * kTile + 8] = value(high, high_row, d);
    }
  }
}

template <class T>
__device__ void many_scores(const ManyWork<T>& work) {
  const auto [across, down] = tile_place();
  const int pieces = (work.dim + kTile - 1) / kTile;  // of the depth, for each kind of key
  const int kinds = work.position_keys != nullptr ? 2 : 1;
  const int tiles = (work.end + kTile - 1) / kTile, steps = tiles * pieces * kinds;
  const auto depth = [&](int step) { return min(kTile, work.dim - step % pieces * kTile); };
  const auto stage = [&](int step) {
    if (step < steps) {
      const T* keys = step / pieces % kinds == 0 ? work.keys : work.position_keys;
      stage_keys(work.right + step % 2 * kStage<T>, keys, work.dim, step / (pieces * kinds) * kTile, work.end,
                 step % pieces * kTile, depth(step));
    }
    commit_copies();
  };
  float greatest[8], sum[8][4] = {};
#pragma unroll
  for (float& value : greatest) value = -__int_as_float(0x7f80'0000);
  stage(0);
  gather_queries(work);
  for (int step = 0; step < steps; ++step) {
    wait_for_copies<0>();
    __syncthreads();
    stage(step + 1);
    const int at = step / pieces % kinds * work.dim + step % pieces * kTile;
    multiply(work.left + at * kTile, work.right + step % 2 * kStage<T>, depth(step), sum);
    if ((step + 1) % (pieces * kinds) != 0) continue;
    const int j0 = step / (pieces * kinds) * kTile + 4 * down;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        sum[i][j] = __fmul_rn(sum[i][j], work.s.scale);
        if (j0 + j < work.seen(tile_query(across, i))) greatest[i] = fmaxf(greatest[i], sum[i][j]);
      }
      if (j0 + j < work.end) {
        float* to = work.scores + std::int64_t{j0 + j} * kTile + 4 * across;
        *reinterpret_cast<float4*>(to) = {sum[0][j], sum[1][j], sum[2][j], sum[3][j]};
        *reinterpret_cast<float4*>(to + 32) = {sum[4][j], sum[5][j], sum[6][j], sum[7][j]};
      }
#pragma unroll
      for (int i = 0; i < 8; ++i) sum[i][j] = 0.0f;
    }
  }
  // The greatest of a query is that of the sixteen threads that have it.
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 8; ++i) work.left[down * kTile + tile_query(across, i)] = greatest[i];
  __syncthreads();
  if (threadIdx.x < kTile) {
    float most = work.left[threadIdx.x];
    for (int i = 1; i < kManyThreads / 8; ++i) most = fmaxf(most, work.left[i * kTile + threadIdx.x]);
    work.greatest[threadIdx.x] = most;
  }
  __syncthreads();
}

// A tile of scores becomes numerators where it lies. A thread has four queries, and of the sixteen partial
// sums of each those two of the positions down and down + 8 (modulo 16).
template <class T>
__device__ void numerators(const ManyWork<T>& work, float* tile, int j0, float (&partial)[2][4]) {
  const int n = static_cast<int>(threadIdx.x % 16) * 4, down = static_cast<int>(threadIdx.x / 16);
  const Four greatest = load_four(work.greatest + n);
  const int seen[4] = {work.seen(n), work.seen(n + 1), work.seen(n + 2), work.seen(n + 3)};
#pragma unroll
  for (int j = 0; j < kTile / 8; ++j) {
    float* at = tile + (8 * j + down) * kTile + n;
    Four p = load_four(at);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      p.at[i] = numerator(p.at[i], greatest.at[i], j0 + 8 * j + down < seen[i]);
      partial[j % 2][i] = __fadd_rn(partial[j % 2][i], p.at[i]);
    }
    *reinterpret_cast<float4*>(at) = {p.at[0], p.at[1], p.at[2], p.at[3]};
  }
}

template <class T>
__device__ void fold_sums(const ManyWork<T>& work, const float (&partial)[2][4]) {
  const int n = static_cast<int>(threadIdx.x % 16) * 4, down = static_cast<int>(threadIdx.x / 16);
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    // The first fold: partial sum number down + 8 to number down.
    work.left[down * kTile + n + i] = __fadd_rn(partial[0][i], partial[1][i]);
  }
  __syncthreads();
  if (threadIdx.x < kTile) {
    float sum[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) sum[i] = work.left[i * kTile + threadIdx.x];
#pragma unroll
    for (int width = 4; width > 0; width /= 2) {
#pragma unroll
      for (int i = 0; i < width; ++i) sum[i] = __fadd_rn(sum[i], sum[i + width]);
    }
    work.sums[threadIdx.x] = sum[0];
  }
  __syncthreads();
}

// Columns [first, first + kTile) of the head's outputs.
template <class T>
__device__ void many_outputs(const ManyWork<T>& work, int first) {
  const auto [across, down] = tile_place();
  const int tiles = (work.end + kTile - 1) / kTile;
  const auto stage = [&](int tile) {
    if (tile < tiles) {
      float* scores = work.left + tile % 2 * kTile * kTile;
      const float* from = work.scores + std::int64_t{tile} * kTile * kTile;
#pragma unroll
      for (int i = 0; i < kTile * kTile; i += 4 * kManyThreads) {
        const int at = i + 4 * static_cast<int>(threadIdx.x);
        if (tile * kTile + at / kTile < work.end) copy_async(scores + at, from + at);
      }
      stage_columns(work.right + tile % 2 * kStage<T>, work.values, work.dim, tile * kTile, work.end, first);
    }
    commit_copies();
  };
  float sum[8][4] = {}, partial[2][4] = {};
  const int common = work.seen(0);  // positions that all queries see
  stage(0);
  for (int tile = 0; tile < tiles; ++tile) {
    wait_for_copies<0>();
    __syncthreads();
    stage(tile + 1);
    const int j0 = tile * kTile, count = min(kTile, work.end - j0);
    float* p = work.left + tile % 2 * kTile * kTile;
    const T* v = work.right + tile % 2 * kStage<T>;
    numerators(work, p, j0, partial);
    __syncthreads();
    if (j0 + count <= common) {
      multiply_values<false>(p, v, count, 0, sum);
    } else {
      multiply_values<true>(p, v, count, common - j0, sum);
    }
  }
  fold_sums(work, partial);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int n = tile_query(across, i);
    if (work.q0 + n >= work.s.queries) continue;
    float* out = work.s.out + (work.q0 + n) * work.s.ldo + work.head * work.dim + first;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int column = down + 16 * j;
      if (first + column < work.dim) out[column] = __fdiv_rn(sum[i][j], work.sums[n]);
    }
  }
  __syncthreads();  // before the memory is used again
}

// scores: [blocks, positions, kTile].
template <class T>
__global__ void __launch_bounds__(kManyThreads, 3)
    many_queries(const Sequences* passed, float* scores, std::int64_t positions) {
  cuda::in_order();
  const Sequences& sequences = *passed;
  extern __shared__ __align__(16) std::byte shared[];
  __shared__ float greatest[kTile], sums[kTile];
  const int dim = sequences.dim;
  for (int item = blockIdx.x; item < sequences.items; item += gridDim.x) {
    const Sequence s = sequences.of(item);
    const auto [head, q0] = place(s, item, kTile);
    const T* keys = reinterpret_cast<const T*>(s.kv) + std::int64_t{head} * 2 * s.rows * dim;
    const int depth = s.positions != nullptr ? 2 * dim : dim;
    float* left = reinterpret_cast<float*>(shared);
    const ManyWork<T> work{
        .s = s,
        .head = head,
        .q0 = q0,
        .dim = dim,
        .end = s.seen(q0 + kTile - 1),
        .keys = keys,
        .values = keys + s.rows * dim,
        .position_keys = s.positions == nullptr ? nullptr
                                                : reinterpret_cast<const T*>(s.positions) +
                                                      std::int64_t{head} * 2 * s.position_rows * dim,
        .scores = scores + blockIdx.x * positions * kTile,
        .left = left,
        .right = reinterpret_cast<T*>(left + (depth > 2 * kTile ? depth : 2 * kTile) * kTile),
        .greatest = greatest,
        .sums = sums};
    many_scores(work);
    for (int first = 0; first < dim; first += kTile) many_outputs(work, first);
  }
}

}  // namespace oasr::kernels::cuda
