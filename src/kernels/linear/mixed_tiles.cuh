// linear() in mixed precision for many rows: tiles of the output in registers, products on the matrix units.
//
// x has become operands before (mixed_round.cuh). A block computes [kM, kN], a warp [kWarpM, kWarpN] of it.
// Slices of kDepth k go through a ring of kStages buffers in shared memory by cp.async:
//   x  [kM][kDepth]      operands, chunks of 16 bytes twisted so that the rows that ldmatrix reads at once
//                        lie in different banks
//   w  [kDepth][kN]      numbers of 16 bits as they are stored, twisted too; or floats, rows of kN + 4
// A sum is that of its pieces (mixed_common.cuh), each a chain of its steps.
#pragma once

#include "kernels/linear/mixed_common.cuh"

namespace oasr::kernels::cuda {

// x as operands: rows `ld` numbers of 16 bits apart, which start at multiples of 16 bytes.
struct MixedRows {
  const std::uint16_t* x;
  std::int64_t ld;
};

// T: what the weight is stored as. kBlocks: of a multiprocessor.
template <class T, int M, int N, int Blocks>
struct MixedShape {
  static constexpr bool kFloats = sizeof(T) == 4;
  static constexpr int kM = M, kN = N, kWarpsM = 2, kWarpsN = N / 32, kThreads = 32 * kWarpsM * kWarpsN;
  static constexpr int kWarpM = kM / kWarpsM, kWarpN = kN / kWarpsN, kBlocks = Blocks;
  static constexpr int kDepth = 32, kStages = 4;
  static constexpr int kXStride = kDepth * 2;                       // bytes
  static constexpr int kWStride = kFloats ? (kN + 4) * 4 : kN * 2;  // bytes
  static constexpr int kX = kM * kXStride, kStage = kX + kDepth * kWStride;
  static constexpr int kShared = kStages * kStage;
  static constexpr int kStripStride = kWarpN + 8;  // floats of a row of sums on their way out
  static_assert(kM * kDepth * 2 % (16 * kThreads) == 0 && kN * kDepth * sizeof(T) % (16 * kThreads) == 0);
  static_assert(kWarpsM * kWarpsN * 16 * kStripStride * 4 <= kShared && kMixedPiece % kDepth == 0 &&
                kDepth == 32);
  // Where chunk `chunk` of row m of x is.
  static __device__ int x_chunk_at(int m, int chunk) { return m * kXStride + (chunk ^ (m >> 1 & 3)) * 16; }
  // Where chunk `chunk` of row k is.
  static __device__ int chunk_at(int k, int chunk) {
    return k * kWStride + (kFloats ? chunk : chunk ^ ((k & 1) << 2 | (k >> 1 & 3))) * 16;
  }
};

template <class E, class T, class Shape>
class MixedProduct {
  static constexpr int kTilesM = Shape::kWarpM / 16, kTilesN = Shape::kWarpN / 8;  // of mma
  // Copies of 16 bytes: of a row of x in a slice, rows at once, and those of a thread; of the weight in
  // numbers.
  static constexpr int kChunksX = Shape::kDepth / 8, kRowsX = Shape::kThreads / kChunksX;
  static constexpr int kCopiesX = Shape::kM / kRowsX;
  static constexpr int kChunkW = 16 / static_cast<int>(sizeof(T)), kInPanelW = 32 / kChunkW;
  static constexpr int kCopiesW = Shape::kN / kChunkW * Shape::kDepth / Shape::kThreads;

 public:
  __device__ MixedProduct(const MixedProblem& problem, const MixedRows& rows, int first_m, int first_n,
                          std::byte* shared)
      : problem_(problem),
        p_(problem.of),
        rows_(rows),
        first_m_(first_m),
        first_n_(first_n),
        shared_(shared),
        ring_(shared_address(shared)),
        lane_(threadIdx.x % 32) {
    const int warp = threadIdx.x / 32;
    warp_m_ = warp % Shape::kWarpsM * Shape::kWarpM;
    warp_n_ = warp / Shape::kWarpsM * Shape::kWarpN;
    // Chunks two further on, of the next 16 k or channels, are at bit 5.
    read_x_ = Shape::x_chunk_at(warp_m_ + lane_ % 16, lane_ / 16);
    read_w_ = Shape::kX + Shape::chunk_at(lane_ % 16, warp_n_ / 8 + lane_ / 16);
    find_sources();
  }

  __device__ void run() {
    constexpr int kAhead = Shape::kStages - 1, kSlices = kMixedPiece / Shape::kDepth;  // of a piece
    const int slices = static_cast<int>((p_.k + Shape::kDepth - 1) / Shape::kDepth);
#pragma unroll
    for (int s = 0; s < kAhead; ++s) {
      if (s < slices) load(s, s);
      copy_async_commit();
    }
    int read = 0, written = kAhead;  // buffers of the ring
    for (int s = 0; s < slices; ++s) {
      copy_async_wait<kAhead - 1>();
      __syncthreads();  // the slice is there for all, and none reads the one before it any more
      if (s + kAhead < slices) load(s + kAhead, written);
      copy_async_commit();
      const int left = static_cast<int>(p_.k) - s * Shape::kDepth;
      const int buffer = read * Shape::kStage;
      if (left > Shape::kDepth / 2) {
        multiply<Shape::kDepth>(buffer);
      } else {
        multiply<Shape::kDepth / 2>(buffer);  // no step of zeros: as many as in any other kernel
      }
      if (s % kSlices == kSlices - 1 || s + 1 == slices) end_piece();
      if (++read == Shape::kStages) read = 0;
      if (++written == Shape::kStages) written = 0;
    }
    copy_async_wait<0>();
    __syncthreads();
    write();
  }

 private:
  // Where this thread reads in slice 0. Rows after the last are read as the last, channels after the last
  // panel as those of the last: what they give is not written.
  __device__ void find_sources() {
    const std::int64_t last_m = p_.args.m - 1, last_panel = (p_.n - 1) / 32;
#pragma unroll
    for (int i = 0; i < kCopiesX; ++i) {
      const std::int64_t m = first_m_ + threadIdx.x / kChunksX + i * kRowsX;
      x_at_[i] = static_cast<unsigned>((m < last_m ? m : last_m) * rows_.ld) + 8 * (threadIdx.x % kChunksX);
    }
#pragma unroll
    for (int i = 0; i < kCopiesW; ++i) {
      const PlaceW at = place_w(i);
      const std::int64_t panel =
          first_n_ / 32 + at.panel < last_panel ? first_n_ / 32 + at.panel : last_panel;
      w_at_[i] = static_cast<unsigned>((panel * p_.k + at.k) * 32 + at.chunk * kChunkW);
    }
  }

  // Slice s into a buffer; k after the last are zeros on both sides.
  __device__ void load(int s, int buffer) const {
    const unsigned to = ring_ + buffer * Shape::kStage;
    const int first_k = s * Shape::kDepth, depth = static_cast<int>(p_.k) - first_k;
    if (depth >= Shape::kDepth) {
      load<true>(to, first_k, Shape::kDepth);
    } else {
      load<false>(to, first_k, depth);
    }
  }

  // kWhole: depth is kDepth.
  template <bool kWhole>
  __device__ void load(unsigned to, int first_k, int depth) const {
    const int chunk = threadIdx.x % kChunksX, left = depth - 8 * chunk;
    const int bytes = kWhole || left >= 8 ? 16 : (left > 0 ? left * 2 : 0);
    const std::uint16_t* x = rows_.x + first_k;
#pragma unroll
    for (int i = 0; i < kCopiesX; ++i) {
      copy_async_16_shared(to + Shape::x_chunk_at(threadIdx.x / kChunksX + i * kRowsX, chunk),
                           bytes > 0 ? x + x_at_[i] : rows_.x, bytes);
    }
    const T* w = static_cast<const T*>(p_.weight);
    const T* slice = w + std::int64_t{first_k} * 32;
#pragma unroll
    for (int i = 0; i < kCopiesW; ++i) {
      const PlaceW at = place_w(i);
      const bool there = kWhole || at.k < depth;
      copy_async_16(to + Shape::kX + Shape::chunk_at(at.k, at.panel * kInPanelW + at.chunk),
                    there ? slice + w_at_[i] : w, there ? 16 : 0);
    }
  }

  // What this thread's i-th copy of a slice of the weight is.
  struct PlaceW {
    int panel, k, chunk;
  };
  static __device__ PlaceW place_w(int i) {
    const int at = i * Shape::kThreads + static_cast<int>(threadIdx.x);
    return {at / kInPanelW / Shape::kDepth, at / kInPanelW % Shape::kDepth, at % kInPanelW};
  }

  // Operands b of the warp's columns 16 · pair … + 15, of 16 k from k on.
  __device__ void columns(int buffer, int k, int pair, unsigned (&b)[4]) const {
    if constexpr (Shape::kFloats) {
      const int first = warp_n_ + 16 * pair;
      const float* w = reinterpret_cast<const float*>(shared_ + buffer + Shape::kX) +
                       (k + lane_ % 4 * 2) * (Shape::kN + 4) + first + lane_ / 4;
      round_column<E>(w, Shape::kN + 4, b[0], b[1]);
      round_column<E>(w + 8, Shape::kN + 4, b[2], b[3]);
    } else {
      load_columns(b, ring_ + buffer + (read_w_ ^ pair * 32) + k * Shape::kWStride);
#pragma unroll
      for (unsigned& word : b) word = as_operands<E, T>(word);
    }
  }

  // The first kDepth k of a slice.
  template <int kDepth>
  __device__ void multiply(int buffer) {
#pragma unroll
    for (int k = 0; k < kDepth; k += 16) {
      unsigned a[kTilesM][4];
#pragma unroll
      for (int i = 0; i < kTilesM; ++i) {
        load_rows(a[i], ring_ + buffer + (read_x_ ^ k / 16 * 32) + 16 * i * Shape::kXStride);
      }
#pragma unroll
      for (int pair = 0; pair < kTilesN / 2; ++pair) {
        unsigned b[4];
        columns(buffer, k, pair, b);
#pragma unroll
        for (int i = 0; i < kTilesM; ++i) {
          multiply_add<E>(sums_[i][2 * pair], a[i], b[0], b[1]);
          multiply_add<E>(sums_[i][2 * pair + 1], a[i], b[2], b[3]);
        }
      }
    }
  }

  __device__ void end_piece() {
#pragma unroll
    for (int i = 0; i < kTilesM; ++i) {
#pragma unroll
      for (int j = 0; j < kTilesN; ++j) {
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          totals_[i][j][n] = __fadd_rn(totals_[i][j][n], sums_[i][j][n]);
          sums_[i][j][n] = 0;
        }
      }
    }
  }

  // Through shared memory, 16 rows of a warp at a time, so that a lane has four neighbouring channels.
  __device__ void write() {
    constexpr int kLanes = Shape::kWarpN / 4, kStep = 32 / kLanes;  // lanes of a row; rows at once
    constexpr int kRows = 4;
    static_assert(16 % (kStep * kRows) == 0);
    float* strip = reinterpret_cast<float*>(shared_) + threadIdx.x / 32 * 16 * Shape::kStripStride;
    const int row = lane_ / kLanes, column = lane_ % kLanes * 4;
#pragma unroll
    for (int i = 0; i < kTilesM; ++i) {
      float* to = strip + lane_ / 4 * Shape::kStripStride + lane_ % 4 * 2;
#pragma unroll
      for (int j = 0; j < kTilesN; ++j) {
        const float* s = totals_[i][j];
        *reinterpret_cast<float2*>(to + 8 * j) = {s[0], s[1]};
        *reinterpret_cast<float2*>(to + 8 * Shape::kStripStride + 8 * j) = {s[2], s[3]};
      }
      __syncwarp();
#pragma unroll 1
      for (int r = row; r < 16; r += kStep * kRows) {
        float4 sums[kRows];
#pragma unroll
        for (int n = 0; n < kRows; ++n) {
          sums[n] = *reinterpret_cast<const float4*>(strip + (r + n * kStep) * Shape::kStripStride + column);
        }
        write_rows(problem_, first_m_ + warp_m_ + 16 * i + r, kStep, first_n_ + warp_n_ + column, sums);
      }
      __syncwarp();
    }
  }

  const MixedProblem& problem_;
  const LinearProblem& p_;
  const MixedRows& rows_;
  const int first_m_, first_n_;
  std::byte* shared_;
  const unsigned ring_;
  const int lane_;
  int warp_m_, warp_n_;
  unsigned read_x_, read_w_;  // where this lane reads rows and columns of 16 bits in a buffer, first of all
  unsigned x_at_[kCopiesX], w_at_[kCopiesW];
  float sums_[kTilesM][kTilesN][4] = {};    // of the piece
  float totals_[kTilesM][kTilesN][4] = {};  // of the pieces before
};

// Blocks that run at the same time share channels: down the rows first.
template <class E, class T, class Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks)
    mixed_tiles(const __grid_constant__ MixedProblem problem, const __grid_constant__ MixedRows rows,
                unsigned tiles_m) {
  cuda::in_order();
  extern __shared__ __align__(128) std::byte shared[];
  MixedProduct<E, T, Shape>(problem, rows, static_cast<int>(blockIdx.x % tiles_m) * Shape::kM,
                            static_cast<int>(blockIdx.x / tiles_m) * Shape::kN, shared)
      .run();
}

}  // namespace oasr::kernels::cuda
