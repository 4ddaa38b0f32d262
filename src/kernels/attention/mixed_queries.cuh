// Attention in mixed precision: many queries of one head, products on the matrix units.
//
// Two kernels:
//   1. round_keys: tiles of kTileKeys positions of every head become operands in scratch memory, in the form in which
//      the second kernel wants them in shared memory: keys, values and, if there are, keys of positions, each
//      [panels of 16 positions][kDim][16] of 16 bits. What is not stored, and what 16 bits can not hold, is zero, and
//      a word a tile says which positions have something that is not finite.
//   2. mixed_queries: a block has 64 queries, a warp 16 of them. Tile after tile comes to shared memory, one while
//      the other is used; scores are sums of mma over the depth, become numerators with the greatest score so far
//      (outputs and their sum are scaled when it grows), and are operands of the product with the values where they
//      are.
// The two halves of 16 bytes of a row of 16 positions change places where (row / 4) is odd, so that the eight rows
// that ldmatrix reads at once lie in different banks.
#pragma once

#include "kernels/attention/sequences.cuh"
#include "kernels/cuda/async.cuh"
#include "kernels/cuda/int8.cuh"
#include "kernels/cuda/mixed.cuh"

namespace oasr::kernels::cuda {

inline constexpr int kMixedThreads = 128, kMixedQueries = 64;
inline constexpr int kTileKeys = 64;  // positions

template <int kDim>
struct MixedTiles {
  static constexpr int kPart = kTileKeys * kDim * 2;  // bytes of keys, of values
  static constexpr int parts(bool positions) { return positions ? 3 : 2; }
};

// The sequences of a launch, with the numbers of their tiles.
struct MixedSequences {
  std::byte* tiles;           // [tile][head][parts · kPart]
  unsigned long long* odd;    // [tile][head]: positions that are not finite
  std::int32_t* not_finite;   // the word of the layer
  int count_tiles;
  int first_tile[Sequences::kMost];
  Sequences of;

  const MixedSequences* pass(Gpu& gpu) const {
    const std::size_t bytes =
        offsetof(MixedSequences, of) + offsetof(Sequences, at) + sizeof(Sequence) * static_cast<std::size_t>(of.count);
    return static_cast<const MixedSequences*>(gpu.pass(this, bytes));
  }
  __device__ int of_tile(int tile) const {
    int low = 0, high = of.count;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (first_tile[middle] <= tile ? low : high) = middle;
    }
    return low;
  }
};

// Eight numbers as operands. What is not finite becomes zero; the result has a bit for each of them.
template <class E>
__device__ unsigned round_eight(const float (&from)[8], uint4& to) {
  unsigned words[4], odd = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    words[i] = round_two<E>(from[2 * i], from[2 * i + 1]);
    if (low_not_finite<E>(words[i])) {
      odd |= 1u << (2 * i);
      words[i] &= 0xffff'0000u;
    }
    if (high_not_finite<E>(words[i])) {
      odd |= 2u << (2 * i);
      words[i] &= 0xffffu;
    }
  }
  to = {words[0], words[1], words[2], words[3]};
  return odd;
}

template <class T>
__device__ void read_eight(const T* from, float (&to)[8]) {
  constexpr int kAtOnce = 16 / static_cast<int>(sizeof(T));
#pragma unroll
  for (int i = 0; i < 8; i += kAtOnce) {
    const uint4 word = *reinterpret_cast<const uint4*>(from + i);
    const T* values = reinterpret_cast<const T*>(&word);
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) to[i + j] = widen(values[j]);
  }
}

// Blocks: (tile, head).
template <class E, class T, int kDim>
__global__ void __launch_bounds__(kMixedThreads)
    round_keys(const MixedSequences* passed, int parts) {
  cuda::in_order();
  const MixedSequences& sequences = *passed;
  constexpr int kPanels = kTileKeys / static_cast<int>(kKeys), kChunks = kPanels * kDim * 2;
  __shared__ unsigned long long odd;
  if (threadIdx.x == 0) odd = 0;
  __syncthreads();
  const int number = sequences.of_tile(blockIdx.x);
  const Sequence& s = sequences.of.at[number];
  const int first = (static_cast<int>(blockIdx.x) - sequences.first_tile[number]) * kTileKeys;
  const int head = blockIdx.y, dim = sequences.of.dim;
  const std::int64_t place = std::int64_t{blockIdx.x} * sequences.of.heads + head;
  auto* to = reinterpret_cast<uint4*>(sequences.tiles + place * parts * MixedTiles<kDim>::kPart);
  unsigned long long found = 0;
  for (int part = 0; part < parts; ++part) {
    const T* from = reinterpret_cast<const T*>(part < 2 ? s.kv : s.positions);
    if (from != nullptr) {
      const std::int64_t rows = part < 2 ? s.rows : s.position_rows;
      from += (std::int64_t{head} * 2 + (part == 1 ? 1 : 0)) * rows * dim + std::int64_t{first} * dim;
    }
#pragma unroll 4
    for (int i = threadIdx.x; i < kChunks; i += kMixedThreads) {
      const int panel = i / (2 * kDim), d = i / 2 % kDim, half = (i ^ d / 4) & 1;
      const int left = s.length - (first + panel * static_cast<int>(kKeys) + half * 8);  // stored positions
      float values[8] = {};
      if (from != nullptr && d < dim && left > 0) {
        read_eight(from + (panel * dim + d) * kKeys + half * 8, values);
#pragma unroll
        for (int j = 1; j < 8; ++j) values[j] = j < left ? values[j] : 0.0f;
      }
      uint4 operands;
      const unsigned bits = round_eight<E>(values, operands);
      found |= static_cast<unsigned long long>(bits) << (panel * kKeys + half * 8);
      to[part * kChunks + i] = operands;
    }
  }
  if (found != 0) atomicOr(&odd, found);
  __syncthreads();
  if (threadIdx.x == 0) sequences.odd[place] = odd;
}

// 2ˣ; +0 for -infinity and where the result would be subnormal.
__device__ inline float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Over the four lanes of a row, in an order that is the same for all.
__device__ inline float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffff'ffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffff'ffffu, x, 2));
}
__device__ inline float quad_sum(float x) {
  x = __fadd_rn(x, __shfl_xor_sync(0xffff'ffffu, x, 1));
  return __fadd_rn(x, __shfl_xor_sync(0xffff'ffffu, x, 2));
}

template <class E, int kDim, bool kPositions>
class MixedQueries {
  static constexpr int kSteps = kDim / 16;                                   // of mma, over the depth
  static constexpr int kPart = MixedTiles<kDim>::kPart;
  static constexpr int kParts = MixedTiles<kDim>::parts(kPositions);
  static constexpr int kPanelBytes = static_cast<int>(kKeys) * kDim * 2;

 public:
  static constexpr int kShared = 2 * kParts * kPart;

  __device__ MixedQueries(const MixedSequences& sequences, int item, std::byte* shared)
      : sequences_(sequences),
        shared_(shared_address(shared)),
        lane_(threadIdx.x % 32),
        number_(sequences.of.number_of(item)) {
    const Sequence& s = sequences.of.at[number_];
    const auto [head, query] = place(s, item, kMixedQueries);
    head_ = head;
    first_query_ = query + static_cast<int>(threadIdx.x) / 32 * 16;
    query_ = first_query_ + lane_ / 4;
    end_ = s.seen(query + kMixedQueries - 1);
    seen_[0] = s.seen(query_);
    seen_[1] = s.seen(query_ + 8);
  }

  __device__ void run() {
    const Sequence& s = sequences_.of.at[number_];
    const int tiles = (end_ + kTileKeys - 1) / kTileKeys;
    load(0);
    round_queries(s.q, s.q_shift, s, q_);
    if constexpr (kPositions) round_queries(s.q_position, s.q_position_shift, s, q_position_);
    for (int tile = 0; tile < tiles; ++tile) {
      copy_async_wait<0>();
      __syncthreads();  // the tile is there for all, and none reads the one before it any more
      if (tile + 1 < tiles) load(tile + 1);
      const unsigned long long odd = sequences_.odd[place_of(tile)];
      const unsigned stage = shared_ + tile % 2 * kParts * kPart;
      float scores[kTileKeys / 8][4] = {};
      multiply_keys(stage, q_, scores);
      if constexpr (kPositions) multiply_keys(stage + 2 * kPart, q_position_, scores);
      const int first = tile * kTileKeys;
      if (first + kTileKeys > s.seen(first_query_)) hide(first, scores);
      if (odd != 0) note_odd(odd, first);
      numerators(scores);
      multiply_values(stage + kPart, scores);
    }
    write(s);
  }

 private:
  // A tile into its stage.
  __device__ void load(int tile) const {
    const std::byte* from = sequences_.tiles + place_of(tile) * kParts * kPart + threadIdx.x * 16;
    const unsigned to = shared_ + tile % 2 * kParts * kPart + threadIdx.x * 16;
#pragma unroll
    for (int i = 0; i < kParts * kPart; i += kMixedThreads * 16) copy_async_16(to + i, from + i);
    copy_async_commit();
  }
  __device__ std::int64_t place_of(int tile) const {
    return std::int64_t{sequences_.first_tile[number_] + tile} * sequences_.of.heads + head_;
  }

  // Rows query_ and query_ + 8 as operands a; zeros where there are none.
  __device__ void round_queries(const float* from, const float* shift, const Sequence& s, unsigned (&to)[kSteps][4]) {
    const int dim = sequences_.of.dim;
    if (shift != nullptr) shift += head_ * dim;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int query = query_ + 8 * half;
      const bool there = query < s.queries;
      const float* row = from + std::int64_t{there ? query : 0} * s.ldq + head_ * dim;
      const auto at = [&](int d) {
        if (!there || d >= dim) return 0.0f;
        return __fmul_rn(shift == nullptr ? row[d] : __fadd_rn(row[d], shift[d]), s.scale);
      };
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
#pragma unroll
        for (int part = 0; part < 2; ++part) {
          const int d = 16 * step + 8 * part + lane_ % 4 * 2;
          const unsigned word = round_two<E>(at(d), at(d + 1));
          odd_[half] |= low_not_finite<E>(word) || high_not_finite<E>(word);
          to[step][half + 2 * part] = word;
        }
      }
    }
  }

  // scores += queries · keys; keys: [panel][kDim][16].
  __device__ void multiply_keys(unsigned keys, const unsigned (&q)[kSteps][4],
                                float (&scores)[kTileKeys / 8][4]) const {
    const int row = lane_ % 16, half = (lane_ / 16 ^ row / 4) & 1;
    const unsigned from = keys + row * 32 + half * 16;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int panel = 0; panel < kTileKeys / 16; ++panel) {
        unsigned b[4];
        load_columns(b, from + panel * kPanelBytes + step * 16 * 32);
        multiply_add<E>(scores[2 * panel], q[step], b[0], b[1]);
        multiply_add<E>(scores[2 * panel + 1], q[step], b[2], b[3]);
      }
    }
  }

  // Scores of positions that a query does not see become -infinity.
  __device__ void hide(int first, float (&scores)[kTileKeys / 8][4]) const {
#pragma unroll
    for (int j = 0; j < kTileKeys / 8; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int position = first + 8 * j + lane_ % 4 * 2 + e % 2;
        if (position >= seen_[e / 2]) scores[j][e] = -__builtin_inff();
      }
    }
  }

  // A query that sees a position with something that is not finite has no outputs.
  __device__ void note_odd(unsigned long long odd, int first) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int left = seen_[half] - first;
      const unsigned long long visible = left >= kTileKeys ? ~0ull : (left > 0 ? (1ull << left) - 1 : 0);
      odd_[half] |= (odd & visible) != 0;
    }
  }

  // Scores become numerators; what was summed up so far is scaled to the greatest score up to here.
  __device__ void numerators(float (&scores)[kTileKeys / 8][4]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float most = greatest_[half];
#pragma unroll
      for (int j = 0; j < kTileKeys / 8; ++j) {
        most = fmaxf(most, fmaxf(scores[j][2 * half], scores[j][2 * half + 1]));
      }
      most = quad_max(most);
      const float scale = power_of_two(__fsub_rn(greatest_[half], most));
      greatest_[half] = most;
      float sum = 0.0f;
#pragma unroll
      for (int j = 0; j < kTileKeys / 8; ++j) {
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e) {
          scores[j][e] = power_of_two(__fsub_rn(scores[j][e], most));
          sum = __fadd_rn(sum, scores[j][e]);
        }
      }
      sums_[half] = __fmaf_rn(sums_[half], scale, sum);
#pragma unroll
      for (int j = 0; j < kDim / 8; ++j) {
        outputs_[j][2 * half] = __fmul_rn(outputs_[j][2 * half], scale);
        outputs_[j][2 * half + 1] = __fmul_rn(outputs_[j][2 * half + 1], scale);
      }
    }
  }

  // outputs += numerators · values; values: [panel][kDim][16].
  __device__ void multiply_values(unsigned values, const float (&p)[kTileKeys / 8][4]) {
    const int row = lane_ % 8 + lane_ / 16 * 8, half = (lane_ / 8 ^ row / 4) & 1;
    const unsigned from = values + row * 32 + half * 16;
#pragma unroll
    for (int panel = 0; panel < kTileKeys / 16; ++panel) {
      const float(&low)[4] = p[2 * panel];
      const float(&high)[4] = p[2 * panel + 1];
      const unsigned a[4] = {round_two<E>(low[0], low[1]), round_two<E>(low[2], low[3]),
                             round_two<E>(high[0], high[1]), round_two<E>(high[2], high[3])};
#pragma unroll
      for (int pair = 0; pair < kDim / 16; ++pair) {
        unsigned b[4];
        load_rows(b, from + panel * kPanelBytes + pair * 16 * 32);
        multiply_add<E>(outputs_[2 * pair], a, b[0], b[1]);
        multiply_add<E>(outputs_[2 * pair + 1], a, b[2], b[3]);
      }
    }
  }

  __device__ void write(const Sequence& s) {
    const int dim = sequences_.of.dim;
    float* to = s.out + head_ * dim + lane_ % 4 * 2;
    const bool pairs = (reinterpret_cast<std::uintptr_t>(to) | static_cast<std::uintptr_t>(s.ldo) * 4) % 8 == 0;
    const unsigned of_row = 0xfu << (lane_ & ~3);
    const float sums[2] = {quad_sum(sums_[0]), quad_sum(sums_[1])};
    const bool odd_rows[2] = {(__ballot_sync(0xffff'ffffu, odd_[0]) & of_row) != 0,
                              (__ballot_sync(0xffff'ffffu, odd_[1]) & of_row) != 0};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int query = query_ + 8 * half;
      if (query >= s.queries) continue;
      const float sum = sums[half];
      const bool odd = odd_rows[half];
      bool finite = !odd;
      float* row = to + query * s.ldo;
#pragma unroll
      for (int j = 0; j < kDim / 8; ++j) {
        if (8 * j >= dim) break;
        float2 out = {__fdiv_rn(outputs_[j][2 * half], sum), __fdiv_rn(outputs_[j][2 * half + 1], sum)};
        if (odd) out = {__int_as_float(0x7fff'ffff), __int_as_float(0x7fff'ffff)};
        finite = finite && is_finite(out.x) && is_finite(out.y);
        if (pairs) {
          *reinterpret_cast<float2*>(row + 8 * j) = out;
        } else {
          row[8 * j] = out.x;
          row[8 * j + 1] = out.y;
        }
      }
      if (!finite) report_row(sequences_.not_finite, query);
    }
  }

  const MixedSequences& sequences_;
  const unsigned shared_;
  const int lane_;
  int number_, head_, first_query_, query_;
  int end_;      // positions that the last query of the block sees
  int seen_[2];  // those that the lane's queries see
  bool odd_[2] = {};
  unsigned q_[kSteps][4], q_position_[kPositions ? kSteps : 1][4];
  float greatest_[2] = {-__builtin_inff(), -__builtin_inff()};
  float sums_[2] = {};  // of the lane's numerators
  float outputs_[kDim / 8][4] = {};
};

// s.scale of the sequences has the factor log2 e.
template <class E, int kDim, bool kPositions>
__global__ void __launch_bounds__(kMixedThreads, kDim > 64 ? 2 : 3)
    mixed_queries(const MixedSequences* passed) {
  cuda::in_order();
  const MixedSequences& sequences = *passed;
  extern __shared__ __align__(128) std::byte shared[];
  MixedQueries<E, kDim, kPositions>(sequences, blockIdx.x, shared).run();
}

}  // namespace oasr::kernels::cuda
