// Attention of a few queries of one head by one block: a step of a decoder.
//
// Scores, then numerators; then a thread has one output, whose chain over all positions is what takes the
// time: values come to shared memory, in tiles, before they are needed. They lie in panels like keys, so that
// one load is several links of a chain. Few positions' scores are computed by the same block: from keys in shared memory, where
// these have room, else a position by a thread, beyond 512 four neighbouring ones (which the layout makes one load). Of many positions they are the work
// of a kernel of its own, whose blocks spread over the GPU: one multiprocessor would wait for its keys
// longest.
#pragma once

#include "kernels/attention/few_plan.h"
#include "kernels/attention/sequences.cuh"
#include "kernels/cuda/async_copy.cuh"
#include "kernels/cuda/exact.cuh"
#include "kernels/cuda/widen.cuh"

namespace oasr::kernels::cuda {

inline constexpr int kFewThreads = 512;

template <class T>
inline constexpr int kColumn = few_column(sizeof(T));

// Four neighbouring numbers as they are stored, and as floats.
template <class T>
struct Stored;
template <>
struct Stored<float> {
  using Four = float4;
};
template <>
struct Stored<Half> {
  using Four = uint2;
};
struct Four {
  float at[4];
};
__device__ inline Four widen_four(float4 v) { return {v.x, v.y, v.z, v.w}; }
__device__ inline Four widen_four(uint2 v) {
  const float2 a = __half22float2(reinterpret_cast<const __half2&>(v.x));
  const float2 b = __half22float2(reinterpret_cast<const __half2&>(v.y));
  return {a.x, a.y, b.x, b.y};
}
template <class T>
__device__ Four load_four(const T* from) {
  return widen_four(*reinterpret_cast<const typename Stored<T>::Four*>(from));
}

// Part of score_four(): kDepth loads are under way before the first is used.
template <int kDepth, int kQueries, class T>
__device__ void score_depth(const T* keys, const float* q, int dim, float (&sum)[kQueries][4]) {
  typename Stored<T>::Four stored[kDepth];
#pragma unroll
  for (int i = 0; i < kDepth; ++i)
    stored[i] = *reinterpret_cast<const typename Stored<T>::Four*>(keys + i * kKeys);
#pragma unroll
  for (int i = 0; i < kDepth; i += 4) {
    const Four key[4] = {widen_four(stored[i]), widen_four(stored[i + 1]), widen_four(stored[i + 2]),
                         widen_four(stored[i + 3])};
#pragma unroll
    for (int n = 0; n < kQueries; ++n) {
      const Four factor = load_four(q + n * dim + i);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[n][j] = __fmaf_rn(factor.at[k], key[k].at[j], sum[n][j]);
      }
    }
  }
}

// The chains of four positions go on over q · key. keys: the four positions at depth 0.
template <int kQueries, class T>
__device__ void score_four(const T* keys, const float* q, int dim, float (&sum)[kQueries][4]) {
  constexpr int kDeep = (kQueries == 1 ? 64 : 32) / sizeof(T);  // so many registers
  int d = 0;
  for (; d + kDeep <= dim; d += kDeep) score_depth<kDeep>(keys + d * kKeys, q + d, dim, sum);
  for (; d < dim; d += 8) score_depth<8>(keys + d * kKeys, q + d, dim, sum);
}

// Numerators and values of the sixteen positions of a panel, of one output's chain.
template <class T>
struct Links {
  static constexpr int kInLoad = 16 / sizeof(T);
  Four p[4];
  uint4 v[kKeys / kInLoad];

  __device__ void load(const float* numerators, const T* values) {
#pragma unroll
    for (int i = 0; i < 4; ++i) p[i] = load_four(numerators + 4 * i);
#pragma unroll
    for (int i = 0; i < kKeys / kInLoad; ++i) v[i] = *reinterpret_cast<const uint4*>(values + i * kInLoad);
  }
  __device__ Four four(int i) const {
    if constexpr (sizeof(T) == sizeof(float)) {
      return {__uint_as_float(v[i].x), __uint_as_float(v[i].y), __uint_as_float(v[i].z),
              __uint_as_float(v[i].w)};
    } else {
      return widen_four(i % 2 == 0 ? uint2{v[i / 2].x, v[i / 2].y} : uint2{v[i / 2].z, v[i / 2].w});
    }
  }
  __device__ float add_to(float sum) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const Four value = four(i);
#pragma unroll
      for (int k = 0; k < 4; ++k) sum = __fmaf_rn(p[i].at[k], value.at[k], sum);
    }
    return sum;
  }
  // Of the first positions only.
  __device__ float add_to(float sum, int count) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const Four value = four(i);
#pragma unroll
      for (int k = 0; k < 4; ++k) sum = 4 * i + k < count ? __fmaf_rn(p[i].at[k], value.at[k], sum) : sum;
    }
    return sum;
  }
};

// The chain of one output goes on over `count` positions; a panel is loaded while another is added. `step`:
// from panel to panel.
template <class T>
__device__ float chain(const float* p, const T* v, int step, int count, float sum) {
  constexpr int kPanel = static_cast<int>(kKeys);
  const int panels = count / kPanel, rest = count % kPanel;
  Links<T> even, odd;
  if (panels > 0) even.load(p, v);
  int panel = 0;
#pragma unroll 1
  for (; panel + 2 < panels; panel += 2) {
    odd.load(p + kPanel * (panel + 1), v + step * (panel + 1));
    sum = even.add_to(sum);
    even.load(p + kPanel * (panel + 2), v + step * (panel + 2));
    sum = odd.add_to(sum);
  }
  if (panel + 1 < panels) odd.load(p + kPanel * (panel + 1), v + step * (panel + 1));
  if (panel < panels) sum = even.add_to(sum);
  if (panel + 1 < panels) sum = odd.add_to(sum);
  if (rest > 0) {
    odd.load(p + kPanel * panels, v + step * panels);
    sum = odd.add_to(sum, rest);
  }
  return sum;
}

// exp(score - greatest), or +0 where the position is not seen: without a branch, since exp(-infinity) is +0.
__device__ inline float numerator(float score, float greatest, bool seen) {
  return exp(seen ? __fsub_rn(score, greatest) : -__int_as_float(0x7f80'0000));
}

// Panels of values to shared memory, [panel][dim][kColumn]; by the threads from number `busy` on, the others
// have chains to go on with.
template <class T>
__device__ void stage_panels(T* stage, const T* values, int dim, int panels, int busy) {
  constexpr int kInCopy = 16 / sizeof(T), kInColumn = static_cast<int>(kKeys) / kInCopy;
  const int thread = static_cast<int>(threadIdx.x) - busy;
  if (thread < 0) return;
  for (int i = thread; i < panels * dim * kInColumn; i += kFewThreads - busy) {
    copy_async(stage + i / kInColumn * kColumn<T> + i % kInColumn * kInCopy, values + i * kInCopy);
  }
}

// A panel of keys in shared memory; the rest of a warp's positions lies in other banks.
template <class T>
constexpr int panel_stride(int dim) {
  return static_cast<int>(kKeys) * dim + 64 / static_cast<int>(sizeof(T));
}

// Panels of keys to shared memory, panel_stride() apart; by kThreads threads.
template <int kThreads, class T>
__device__ void stage_key_panels(T* stage, const T* keys, int dim, int panels) {
  constexpr int kInCopy = 16 / sizeof(T);
  const int panel = static_cast<int>(kKeys) * dim;
  for (int i = static_cast<int>(threadIdx.x) * kInCopy; i < panels * panel; i += kThreads * kInCopy) {
    copy_async(stage + i / panel * panel_stride<T>(dim) + i % panel, keys + i);
  }
}

// The canonical sum of a row of numerators, by one warp.
__device__ inline float warp_canonical_sum(const float* p, int stride) {
  const int lane = threadIdx.x % 32;
  float sum = 0.0f;
#pragma unroll 8
  for (int j = lane % 16; j < stride; j += 16) sum = __fadd_rn(sum, p[j]);
#pragma unroll
  for (int width = 8; width > 0; width /= 2) sum = __fadd_rn(sum, __shfl_down_sync(0xffff'ffffu, sum, width));
  return __shfl_sync(0xffff'ffffu, sum, 0);
}

// The chains of one position go on over q · key, for kQueries queries. key: the position at depth 0.
template <int kDepth, int kQueries, class T>
__device__ void score_depth(const T* key, const float* q, int dim, float (&sum)[kQueries]) {
  T stored[kDepth];
#pragma unroll
  for (int i = 0; i < kDepth; ++i) stored[i] = key[i * kKeys];
#pragma unroll
  for (int i = 0; i < kDepth; i += 4) {
#pragma unroll
    for (int n = 0; n < kQueries; ++n) {
      const Four factor = load_four(q + n * dim + i);
#pragma unroll
      for (int k = 0; k < 4; ++k) sum[n] = __fmaf_rn(factor.at[k], widen(stored[i + k]), sum[n]);
    }
  }
}
// kDeep: loads that are under way. Loops stay loops: a kernel that runs for microseconds waits for instructions that it has
// not met.
template <int kDeep, int kQueries, class T>
__device__ void score_one(const T* key, const float* q, int dim, float (&sum)[kQueries]) {
  int d = 0;
#pragma unroll 1
  for (; d + kDeep <= dim; d += kDeep) score_depth<kDeep>(key + d * kKeys, q + d, dim, sum);
#pragma unroll 1
  for (; d < dim; d += 8) score_depth<8>(key + d * kKeys, q + d, dim, sum);
}

inline constexpr int kScoreThreads = 128;  // and positions of a block

template <class T>
constexpr std::size_t scores_shared(int kinds, int queries, int dim) {
  return kinds * (sizeof(T) * kScoreThreads / kKeys * panel_stride<T>(dim) + sizeof(float) * queries * dim);
}

// scale · q kᵀ to scores [blocks of few_queries(), queries, stride], of kScoreThreads positions by a block
// (blockIdx.y), one by a thread. What no query sees is left out.
template <class T, int kQueries, int kDim>
__global__ void __launch_bounds__(kScoreThreads)
    few_scores(const Sequences* passed, float* scores, int stride) {
  Sequence s;
  cuda::in_order([&] { s = passed->of(blockIdx.x); });
  extern __shared__ __align__(16) std::byte shared[];
  constexpr int kPanels = kScoreThreads / static_cast<int>(kKeys);
  const auto [head, q0] = place(s, blockIdx.x, kQueries);
  const int queries = min(kQueries, s.queries - q0), seen = s.seen(q0 + queries - 1);
  const int j0 = blockIdx.y * kScoreThreads, kinds = s.positions != nullptr ? 2 : 1;
  if (j0 >= seen) return;
  float* q = reinterpret_cast<float*>(shared);  // [kinds][kQueries][kDim]
  T* tiles = reinterpret_cast<T*>(q + kinds * kQueries * kDim);
  const int panels = min(kPanels, (seen - j0 + static_cast<int>(kKeys) - 1) / static_cast<int>(kKeys));
  for (int kind = 0; kind < kinds; ++kind) {
    const T* keys = reinterpret_cast<const T*>(kind == 0 ? s.kv : s.positions) +
                    std::int64_t{head} * 2 * (kind == 0 ? s.rows : s.position_rows) * kDim +
                    std::int64_t{j0} * kDim;
    T* tile = tiles + kind * kPanels * panel_stride<T>(kDim);
    stage_key_panels<kScoreThreads>(tile, keys, kDim, panels);
    for (int i = threadIdx.x; i < kQueries * kDim; i += kScoreThreads) {
      const int n = i / kDim, column = head * kDim + i % kDim;
      float value = 0.0f;
      if (n < queries) value = kind == 0 ? s.query(q0 + n, column) : s.second_query(q0 + n, column);
      q[kind * kQueries * kDim + i] = value;
    }
  }
  commit_copies();
  wait_for_copies<0>();
  __syncthreads();
  const int j = j0 + static_cast<int>(threadIdx.x);
  if (j >= seen) return;
  float sum[kQueries] = {};
  for (int kind = 0; kind < kinds; ++kind) {
    const T* key =
        tiles +
        (kind * kPanels + static_cast<int>(threadIdx.x) / static_cast<int>(kKeys)) * panel_stride<T>(kDim) +
        threadIdx.x % kKeys;
#pragma unroll 4
    for (int d = 0; d < kDim; d += 4) {
#pragma unroll
      for (int n = 0; n < kQueries; ++n) {
        const Four factor = load_four(q + (kind * kQueries + n) * kDim + d);
#pragma unroll
        for (int i = 0; i < 4; ++i) sum[n] = __fmaf_rn(factor.at[i], widen(key[(d + i) * kKeys]), sum[n]);
      }
    }
  }
#pragma unroll
  for (int n = 0; n < kQueries; ++n) {
    scores[(std::int64_t{blockIdx.x} * kQueries + n) * stride + j] = __fmul_rn(sum[n], s.scale);
  }
}

// What functions that compute scores know of a head. `seen`: positions, by the last query.
template <class T>
struct ScoreWork {
  const T* keys;
  const T* position_keys;  // or null
  const float* q;          // [queries][dim], as q_position
  const float* q_position;
  int dim, q0, seen;
  float* p;  // [queries][stride]
  int stride;

  // The chains of a position's scores with kCount queries from number `first` on. at: numbers from the first key to
  // the position's.
  template <int kDeep, int kCount>
  __device__ void chains(std::int64_t at, int first, float (&sum)[kCount]) const {
    score_one<kDeep>(keys + at, q + first * dim, dim, sum);
    if (position_keys != nullptr) score_one<kDeep>(position_keys + at, q_position + first * dim, dim, sum);
  }
  // A score of query number n, whose chain is done.
  __device__ void keep(const Sequence& s, int n, int position, float sum, float& greatest) const {
    const float score = __fmul_rn(sum, s.scale);
    if (position < s.seen(q0 + n)) greatest = fmaxf(greatest, score);
    p[n * stride + position] = score;
  }
};

// Scores of one head's positions, to p, and the greatest of them that each query sees and this thread has
// computed. Keys where the cache has them: of few positions a thread has one, of many four.
template <class T, int kQueries>
__device__ void compute_scores(const Sequence& s, const ScoreWork<T>& work, float (&greatest)[kQueries]) {
  const int thread = static_cast<int>(threadIdx.x);
  const auto at = [&](int position) { return std::int64_t{position} / kKeys * kKeys * work.dim + position % kKeys; };
  if (work.seen <= kFewThreads) {
    if (thread >= work.seen) return;
    float sum[kQueries] = {};
    work.template chains<32>(at(thread), 0, sum);
#pragma unroll
    for (int n = 0; n < kQueries; ++n) work.keep(s, n, thread, sum[n], greatest[n]);
    return;
  }
  for (int j = 4 * thread; j < work.seen; j += 4 * kFewThreads) {
    float sum[kQueries][4] = {};
    score_four(work.keys + at(j), work.q, work.dim, sum);
    if (work.position_keys != nullptr) score_four(work.position_keys + at(j), work.q_position, work.dim, sum);
#pragma unroll
    for (int n = 0; n < kQueries; ++n) {
      const int last = s.seen(work.q0 + n);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        sum[n][i] = __fmul_rn(sum[n][i], s.scale);
        if (j + i < last) greatest[n] = fmaxf(greatest[n], sum[n][i]);
      }
      *reinterpret_cast<float4*>(work.p + n * work.stride + j) = {sum[n][0], sum[n][1], sum[n][2], sum[n][3]};
    }
  }
}

// The same, of keys in shared memory, panels of them panel_stride() apart. Four warps do it, one for each scheduler: with
// more queries to a thread a key is loaded less often, and with fewer threads chains have less to wait for.
inline constexpr int kStagedThreads = 128;

// kEach: queries of a thread.
template <int kEach, class T, int kQueries>
__device__ void staged_scores(const Sequence& s, const ScoreWork<T>& work, float (&greatest)[kQueries]) {
  constexpr int kPositions = kStagedThreads * kEach / kQueries;
  const int thread = static_cast<int>(threadIdx.x), group = thread / kPositions;
  for (int j = thread % kPositions; j < work.seen; j += kPositions) {
    float sum[kEach] = {};
    const int at = j / static_cast<int>(kKeys) * panel_stride<T>(work.dim) + j % static_cast<int>(kKeys);
    work.template chains<16>(at, group * kEach, sum);
#pragma unroll
    for (int n = 0; n < kQueries; ++n) {
      if (n / kEach == group) work.keep(s, n, j, sum[n % kEach], greatest[n]);
    }
  }
}

template <class T, int kQueries>
__device__ void compute_staged_scores(const Sequence& s, const ScoreWork<T>& work, float (&greatest)[kQueries]) {
  if (threadIdx.x >= kStagedThreads) return;
  const auto serves = [&](int each) { return work.seen * kQueries <= kStagedThreads * each; };
  if constexpr (kQueries >= 8) {
    if (serves(kQueries / 8)) return staged_scores<kQueries / 8>(s, work, greatest);
  }
  if constexpr (kQueries >= 4) {
    if (serves(kQueries / 4)) return staged_scores<kQueries / 4>(s, work, greatest);
    if (serves(kQueries / 2)) return staged_scores<kQueries / 2>(s, work, greatest);
  }
  staged_scores<kQueries>(s, work, greatest);
}

// kDim: of the heads, so that addresses are constants, or 0 for any.
template <class T, int kQueries, int kDim, Rows kRows>
__global__ void __launch_bounds__(kFewThreads, 1)
    few_queries(const Sequences* passed, FewPlan plan) {
  Sequence s;
  cuda::in_order([&] { s = passed->of(blockIdx.x); });
  constexpr int kWarps = kFewThreads / 32;
  extern __shared__ __align__(16) std::byte shared[];
  __shared__ float warp_greatest[kQueries][kWarps], sums[kQueries];
  const auto [head, q0] = place(s, blockIdx.x, kQueries);
  const int dim = kDim > 0 ? kDim : passed->dim;
  const int queries = min(kQueries, s.queries - q0), seen = s.seen(q0 + queries - 1);
  T* stages = reinterpret_cast<T*>(shared);
  const int tile_panels = plan.tile / static_cast<int>(kKeys), tile_size = tile_panels * dim * kColumn<T>;
  float* q = reinterpret_cast<float*>(stages + kFewStages * tile_size);
  float* q_position = q + kQueries * dim;
  float* outer = plan.outer + std::int64_t{blockIdx.x} * kQueries * plan.stride;
  float* p = kRows == Rows::outside ? outer : q_position + kQueries * dim;
  const T* keys = reinterpret_cast<const T*>(s.kv) + std::int64_t{head} * 2 * s.rows * dim;
  const T* values = keys + s.rows * dim;
  const int tiles = (seen + plan.tile - 1) / plan.tile;
  const int busy = min(queries * dim / 32 * 32, kFewThreads / 2);
  const int all_panels = (seen + static_cast<int>(kKeys) - 1) / static_cast<int>(kKeys);
  const auto stage = [&](int tile) {
    if (tile < tiles) {
      const int first = tile * tile_panels;
      stage_panels(stages + tile % kFewStages * tile_size, values + std::int64_t{first} * kKeys * dim, dim,
                   min(tile_panels, all_panels - first), busy);
    }
    commit_copies();
  };
  for (int tile = 0; tile + 1 < kFewStages; ++tile) stage(tile);
  const T* position_keys = s.positions == nullptr ? nullptr
                                                  : reinterpret_cast<const T*>(s.positions) +
                                                        std::int64_t{head} * 2 * s.position_rows * dim;
  // Where one tile has all positions, their keys come beside it: to the stages that have no values.
  const bool keys_staged = kRows == Rows::inside && tiles == 1 && panel_stride<T>(dim) <= dim * kColumn<T>;
  if (keys_staged) {
    stage_key_panels<kFewThreads>(stages + tile_size, keys, dim, all_panels);
    if (position_keys != nullptr) stage_key_panels<kFewThreads>(stages + 2 * tile_size, position_keys, dim, all_panels);
    commit_copies();
  }

  // Scores, and the greatest that each query sees.
  float greatest[kQueries];
#pragma unroll
  for (float& value : greatest) value = -__int_as_float(0x7f80'0000);
  if constexpr (kRows == Rows::handed) {
#pragma unroll
    for (int n = 0; n < kQueries; ++n) {
      const int last = n < queries ? s.seen(q0 + n) : 0;
      for (int j = threadIdx.x; j < last; j += kFewThreads) {
        const float score = outer[n * plan.stride + j];
        p[n * plan.stride + j] = score;
        greatest[n] = fmaxf(greatest[n], score);
      }
    }
  } else {
#pragma unroll 1
    for (int i = threadIdx.x; i < kQueries * dim; i += kFewThreads) {
      const int n = i / dim, column = head * dim + i % dim;
      q[i] = n < queries ? s.query(q0 + n, column) : 0.0f;
      if (s.q_position != nullptr) q_position[i] = n < queries ? s.second_query(q0 + n, column) : 0.0f;
    }
    if (keys_staged) wait_for_copies<0>();
    __syncthreads();
    ScoreWork<T> work{.keys = keys,
                      .position_keys = position_keys,
                      .q = q,
                      .q_position = q_position,
                      .dim = dim,
                      .q0 = q0,
                      .seen = seen,
                      .p = p,
                      .stride = plan.stride};
    if (keys_staged) {
      work.keys = stages + tile_size;
      if (position_keys != nullptr) work.position_keys = stages + 2 * tile_size;
      compute_staged_scores(s, work, greatest);
    } else {
      compute_scores(s, work, greatest);
    }
  }
  const int warp = threadIdx.x / 32;
#pragma unroll
  for (int n = 0; n < kQueries; ++n) {
#pragma unroll
    for (int width = 16; width > 0; width /= 2) {
      greatest[n] = fmaxf(greatest[n], __shfl_xor_sync(0xffff'ffffu, greatest[n], width));
    }
    if (threadIdx.x % 32 == 0) warp_greatest[n][warp] = greatest[n];
  }
  __syncthreads();

  // Numerators; zeros after the last position that is seen, which change no sum.
  for (int i = threadIdx.x; i < queries * plan.stride; i += kFewThreads) {
    const int n = kQueries == 1 ? 0 : i / plan.stride, j = i - n * plan.stride;  // n: one for a warp
    float most = warp_greatest[n][threadIdx.x % kWarps];
#pragma unroll
    for (int width = kWarps / 2; width > 0; width /= 2)
      most = fmaxf(most, __shfl_xor_sync(0xffff'ffffu, most, width));
    const bool seen_by_it = j < s.seen(q0 + n);
    p[i] = numerator(seen_by_it ? p[i] : 0.0f, most, seen_by_it);
  }

  for (int first = 0; first < queries * dim; first += kFewThreads) {
    if (first > 0) {  // more outputs than threads: the values again
      __syncthreads();
      for (int tile = 0; tile + 1 < kFewStages; ++tile) stage(tile);
    }
    const int output = first + static_cast<int>(threadIdx.x), n = output / dim, d = output % dim;
    const bool mine = output < queries * dim;
    const int last = mine ? s.seen(q0 + n) : 0;
    float sum = 0.0f;
    for (int tile = 0; tile < tiles; ++tile) {
      wait_for_copies<kFewStages - 2>();
      __syncthreads();
      stage(tile + kFewStages - 1);
      if (tile == 0 && first == 0 && kWarps - 1 - warp < queries) {  // beside the chains of other warps
        const int of = kWarps - 1 - warp;
        const float total = warp_canonical_sum(p + of * plan.stride, plan.stride);
        if (threadIdx.x % 32 == 0) sums[of] = total;
      }
      const int j0 = tile * plan.tile, count = min(plan.tile, last - j0);
      if (count > 0) {
        sum = chain(p + n * plan.stride + j0, stages + tile % kFewStages * tile_size + d * kColumn<T>,
                    dim * kColumn<T>, count, sum);
      }
    }
    __syncthreads();
    if (mine) s.out[(q0 + n) * s.ldo + head * dim + d] = __fdiv_rn(sum, sums[n]);
  }
  if (s.weights == nullptr) return;
  for (int n = 0; n < queries; ++n) {
    float* weights = s.weights + (std::int64_t{head} * s.queries + q0 + n) * s.length;
    const int last = s.seen(q0 + n);
    for (int j = threadIdx.x; j < s.length; j += kFewThreads) {
      weights[j] = j < last ? __fdiv_rn(p[n * plan.stride + j], sums[n]) : 0.0f;
    }
  }
}

}  // namespace oasr::kernels::cuda
