// linear() in mixed precision for many rows: tiles of the output in registers, products on the matrix units.
//
// A block of four warps computes [kM, kN], a warp [kWarpM, kWarpN] of it. Slices of kDepth k go through a ring of
// kStages buffers in shared memory by cp.async, as they are stored:
//   x  [kM][kDepth + 8]  floats, which become operands on their way to registers; the gap keeps the rows that a
//                        warp reads at once in different banks
//   w  [kDepth][kN]      numbers of 16 bits, chunks of 16 bytes twisted so that the rows that ldmatrix reads at
//                        once lie in different banks; or floats, rows of kN + 4
// A sum takes its k in steps of 16, in rising order, whatever the tile.
#pragma once

#include "kernels/linear/mixed_common.cuh"

namespace oasr::kernels::cuda {

// T: what the weight is stored as.
template <class T, int N>
struct MixedShape {
  static constexpr bool kFloats = sizeof(T) == 4;
  static constexpr int kM = 64, kN = N, kWarpsM = 2, kWarpsN = 2, kThreads = 128;
  static constexpr int kWarpM = kM / kWarpsM, kWarpN = kN / kWarpsN;
  static constexpr int kDepth = 32, kStages = 4;
  static constexpr int kXStride = kDepth + 8;                               // floats
  static constexpr int kWStride = kFloats ? (kN + 4) * 4 : kN * 2;          // bytes
  static constexpr int kX = kM * kXStride * 4, kStage = kX + kDepth * kWStride;
  static constexpr int kShared = kStages * kStage;
  static constexpr int kStripStride = kWarpN + 8;  // floats of a row of sums on their way out
  static_assert(kWarpsM * kWarpsN * 16 * kStripStride * 4 <= kShared);
  // Where chunk `chunk` of row k is.
  static __device__ int chunk_at(int k, int chunk) {
    return k * kWStride + (kFloats ? chunk : chunk ^ ((k & 1) << 2 | (k >> 1 & 3))) * 16;
  }
};

template <class E, class T, class Shape>
class MixedProduct {
  static constexpr int kTilesM = Shape::kWarpM / 16, kTilesN = Shape::kWarpN / 8;  // of mma

 public:
  __device__ MixedProduct(const MixedProblem& problem, std::int64_t first_m, std::int64_t first_n,
                          std::byte* shared)
      : problem_(problem),
        p_(problem.of),
        first_m_(first_m),
        first_n_(first_n),
        shared_(shared),
        ring_(shared_address(shared)),
        lane_(threadIdx.x % 32) {
    const int warp = threadIdx.x / 32;
    warp_m_ = warp % Shape::kWarpsM * Shape::kWarpM;
    warp_n_ = warp / Shape::kWarpsM * Shape::kWarpN;
  }

  __device__ void run() {
    constexpr int kAhead = Shape::kStages - 1;
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
      const std::int64_t left = p_.k - std::int64_t{s} * Shape::kDepth;
      multiply(read * Shape::kStage, left < Shape::kDepth ? static_cast<int>(left) : Shape::kDepth);
      if (++read == Shape::kStages) read = 0;
      if (++written == Shape::kStages) written = 0;
    }
    copy_async_wait<0>();
    __syncthreads();
    write();
  }

 private:
  // Slice s into a buffer. Rows after the last are zeros, and so is k after the last, on both sides; channels
  // after the last panel are read as those of the last: what they give is not written.
  __device__ void load(int s, int buffer) const {
    const unsigned to = ring_ + buffer * Shape::kStage;
    const std::int64_t first_k = std::int64_t{s} * Shape::kDepth;
    if (p_.x_vectors) {
      load_x<4>(to, first_k);
    } else {
      load_x<1>(to, first_k);
    }
    load_w(to + Shape::kX, first_k);
  }

  // kWidth: floats of a copy.
  template <int kWidth>
  __device__ void load_x(unsigned to, std::int64_t first_k) const {
    constexpr int kColumns = Shape::kDepth / kWidth;
    const int column = threadIdx.x % kColumns * kWidth;
    const std::int64_t k = first_k + column, left = p_.k - k;
    const int count = left >= kWidth ? kWidth : (left > 0 ? static_cast<int>(left) : 0);
#pragma unroll
    for (int i = 0; i < Shape::kM * kColumns / Shape::kThreads; ++i) {
      const int row = i * (Shape::kThreads / kColumns) + threadIdx.x / kColumns;
      const std::int64_t m = first_m_ + row;
      const bool there = m < p_.args.m && count > 0;
      const float* from = there ? p_.args.x + m * p_.args.ldx + k : p_.args.x;
      const unsigned at = to + (row * Shape::kXStride + column) * 4;
      if constexpr (kWidth == 4) {
        copy_async_16_shared(at, from, there ? count * 4 : 0);
      } else {
        copy_async_4(at, from, there ? 4 : 0);
      }
    }
  }

  __device__ void load_w(unsigned to, std::int64_t first_k) const {
    constexpr int kChunk = 16 / static_cast<int>(sizeof(T)), kInPanel = 32 / kChunk;  // chunks of a k
    constexpr int kDepths = Shape::kThreads / kInPanel;                              // copied at once
    const int chunk = threadIdx.x % kInPanel, k = threadIdx.x / kInPanel;
    const std::int64_t last = (p_.n - 1) / 32;
    const T* weight = static_cast<const T*>(p_.weight);
#pragma unroll
    for (int panel = 0; panel < Shape::kN / 32; ++panel) {
      const std::int64_t number = first_n_ / 32 + panel < last ? first_n_ / 32 + panel : last;
      const T* from = weight + number * p_.k * 32 + chunk * kChunk;
#pragma unroll
      for (int i = 0; i < Shape::kDepth; i += kDepths) {
        const bool there = first_k + k + i < p_.k;
        copy_async_16(to + Shape::chunk_at(k + i, panel * kInPanel + chunk),
                      there ? from + (first_k + k + i) * 32 : from, there ? 16 : 0);
      }
    }
  }

  // Operands b of the warp's columns 16 · pair … + 15, of 16 k from k on.
  __device__ void columns(int buffer, int k, int pair, unsigned (&b)[4]) const {
    const int first = warp_n_ + 16 * pair;
    if constexpr (Shape::kFloats) {
      const float* w = reinterpret_cast<const float*>(shared_ + buffer + Shape::kX) +
                       (k + lane_ % 4 * 2) * (Shape::kN + 4) + first + lane_ / 4;
      round_column<E>(w, Shape::kN + 4, b[0], b[1]);
      round_column<E>(w + 8, Shape::kN + 4, b[2], b[3]);
    } else {
      const int row = k + lane_ % 16;
      load_columns(b, ring_ + buffer + Shape::kX + Shape::chunk_at(row, first / 8 + lane_ / 16));
#pragma unroll
      for (unsigned& word : b) word = as_operands<E, T>(word);
    }
  }

  __device__ void multiply(int buffer, int depth) {
    const float* x = reinterpret_cast<const float*>(shared_ + buffer);
#pragma unroll
    for (int k = 0; k < Shape::kDepth; k += 16) {
      if (k >= depth) break;  // no step of zeros: as many as with any other shape
      unsigned a[kTilesM][4];
#pragma unroll
      for (int i = 0; i < kTilesM; ++i) {
        round_rows<E>(x, Shape::kXStride, warp_m_ + 16 * i + lane_ / 4, k + lane_ % 4 * 2, a[i]);
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
        const float* s = sums_[i][j];
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
  const std::int64_t first_m_, first_n_;
  std::byte* shared_;
  const unsigned ring_;
  const int lane_;
  int warp_m_, warp_n_;
  float sums_[kTilesM][kTilesN][4] = {};
};

// Blocks that run at the same time share channels: down the rows first.
template <class E, class T, class Shape>
__global__ void __launch_bounds__(Shape::kThreads, 3)
    mixed_tiles(const __grid_constant__ MixedProblem problem, unsigned tiles_m) {
  cuda::in_order();
  extern __shared__ __align__(128) std::byte shared[];
  MixedProduct<E, T, Shape>(problem, std::int64_t{blockIdx.x % tiles_m} * Shape::kM,
                            std::int64_t{blockIdx.x / tiles_m} * Shape::kN, shared)
      .run();
}

}  // namespace oasr::kernels::cuda
