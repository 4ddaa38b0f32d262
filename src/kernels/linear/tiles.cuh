// linear() for many rows: tiles of the output in registers.
//
// A block of threads computes [kM, kN], a warp [32, 64] of it, a thread rows r, r + 4, … and twice four
// neighbouring channels: 8 x 8 sums, each one chain over k in rising order. Slices of kDepth k lie in shared
// memory, two of each:
//   x  [kM][kDepth + 4]   as rows (cp.async); a thread reads four k of a row at once
//   w  [kDepth][kN]       as floats, widened on their way through registers
// After the last k x is +0 and w is -0: a product of -0 leaves every sum as it is.
#pragma once

#include "kernels/linear/cuda_common.cuh"

namespace oasr::kernels::cuda {

template <int WarpsM, int WarpsN, int Blocks>
struct FloatTile {
  static constexpr int kWarpsM = WarpsM, kWarpsN = WarpsN, kBlocks = Blocks;
  static constexpr int kThreads = 32 * kWarpsM * kWarpsN;
  static constexpr int kM = 32 * kWarpsM, kN = 64 * kWarpsN, kDepth = 16;
  static constexpr int kStride = kDepth + 4;  // floats of a row of x: no two of four rows in one bank
  static constexpr int kX = kM * kStride, kW = kDepth * kN, kBuffer = kX + kW;
};

template <class Tile, class T, bool kVector>
class FloatTileProduct {
  static constexpr int kUnit = 16 / static_cast<int>(sizeof(T));  // weights read at once
  static constexpr int kUnits = Tile::kW / kUnit / Tile::kThreads;
  static_assert(kUnits >= 1 && Tile::kW % (kUnit * Tile::kThreads) == 0);

 public:
  __device__ FloatTileProduct(const LinearProblem& p, std::int64_t first_m, std::int64_t first_n,
                              float* shared)
      : p_(p), first_m_(first_m), first_n_(first_n), shared_(shared) {
    const int warp = threadIdx.x / 32;
    warp_m_ = warp % Tile::kWarpsM * 32;
    warp_n_ = warp / Tile::kWarpsM * 64;
    row_ = threadIdx.x % 32 / 8;
    column_ = threadIdx.x % 8 * 4;
  }

  __device__ void run() {
    const int slices = static_cast<int>((p_.k + Tile::kDepth - 1) / Tile::kDepth);
    load_x(0, 0);
    fetch_w(0);
    store_w(0, 0);
    copy_async_wait<0>();
    __syncthreads();
    for (int s = 0; s < slices; ++s) {
      const int buffer = s & 1;
      const bool more = s + 1 < slices;
      if (more) {
        load_x(s + 1, buffer ^ 1);
        fetch_w(s + 1);
      }
      multiply(shared_ + buffer * Tile::kBuffer);
      if (more) {
        store_w(s + 1, buffer ^ 1);
        copy_async_wait<0>();
      }
      __syncthreads();
    }
    write();
  }

 private:
  __device__ void load_x(int s, int buffer) {
    constexpr int kWidth = kVector ? 4 : 1;
    constexpr int kColumns = Tile::kDepth / kWidth;
    const unsigned to = shared_address(shared_ + buffer * Tile::kBuffer);
#pragma unroll
    for (int i = 0; i < Tile::kM * kColumns / Tile::kThreads; ++i) {
      const int item = i * Tile::kThreads + threadIdx.x;
      const int row = item / kColumns, column = item % kColumns * kWidth;
      const std::int64_t m = first_m_ + row < p_.args.m ? first_m_ + row : p_.args.m - 1;
      const std::int64_t k = std::int64_t{s} * Tile::kDepth + column, left = p_.k - k;
      const float* x = p_.args.x + m * p_.args.ldx + (left > 0 ? k : 0);
      const int count = left >= kWidth ? kWidth : (left > 0 ? static_cast<int>(left) : 0);
      const unsigned at = to + (row * Tile::kStride + column) * 4;
      if constexpr (kVector) {
        copy_async_16(at, x, count * 4);
      } else {
        copy_async_4(at, x, count * 4);
      }
    }
    copy_async_commit();
  }

  // Where unit i of this thread is in a slice.
  __device__ static int unit_k(int i) { return (i * Tile::kThreads + threadIdx.x) * kUnit / Tile::kN; }
  __device__ static int unit_n(int i) { return (i * Tile::kThreads + threadIdx.x) * kUnit % Tile::kN; }

  __device__ void fetch_w(int s) {
    const std::int64_t last = (p_.n - 1) / 32;
    const T* weight = static_cast<const T*>(p_.weight);
#pragma unroll
    for (int i = 0; i < kUnits; ++i) {
      const std::int64_t k = std::int64_t{s} * Tile::kDepth + unit_k(i);
      const std::int64_t n = first_n_ + unit_n(i), panel = n / 32 < last ? n / 32 : last;
      if (k < p_.k) held_[i] = *reinterpret_cast<const uint4*>(weight + (panel * p_.k + k) * 32 + n % 32);
    }
  }

  __device__ void store_w(int s, int buffer) {
    float* w = shared_ + buffer * Tile::kBuffer + Tile::kX;
#pragma unroll
    for (int i = 0; i < kUnits; ++i) {
      const T* values = reinterpret_cast<const T*>(&held_[i]);
      float* to = w + unit_k(i) * Tile::kN + unit_n(i);
#pragma unroll
      for (int j = 0; j < kUnit; j += 4) {
        float4 four = {-0.0f, -0.0f, -0.0f, -0.0f};
        if (std::int64_t{s} * Tile::kDepth + unit_k(i) < p_.k) {
          four = {widen(values[j]), widen(values[j + 1]), widen(values[j + 2]), widen(values[j + 3])};
        }
        *reinterpret_cast<float4*>(to + j) = four;
      }
    }
  }

  __device__ void multiply(const float* buffer) {
    const float* x = buffer + (warp_m_ + row_) * Tile::kStride;
    const float* w = buffer + Tile::kX + warp_n_ + column_;
#pragma unroll
    for (int k = 0; k < Tile::kDepth; k += 4) {
      float4 a[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) a[i] = *reinterpret_cast<const float4*>(x + i * 4 * Tile::kStride + k);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float4 low = *reinterpret_cast<const float4*>(w + (k + j) * Tile::kN);
        const float4 high = *reinterpret_cast<const float4*>(w + (k + j) * Tile::kN + 32);
        const float b[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          const float value = j == 0 ? a[i].x : (j == 1 ? a[i].y : (j == 2 ? a[i].z : a[i].w));
#pragma unroll
          for (int c = 0; c < 8; ++c) sums_[i][c] = __fmaf_rn(value, b[c], sums_[i][c]);
        }
      }
    }
  }

  // Through shared memory, eight rows of a warp at a time, so that the epilogue is one loop.
  __device__ void write() {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    static_assert(Tile::kWarpsM * Tile::kWarpsN * 8 * 64 <= 2 * Tile::kBuffer);
    float* strip = shared_ + warp * 8 * 64;
#pragma unroll
    for (int i = 0; i < 8; i += 2) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float* s = sums_[i + half];
        float* to = strip + (half * 4 + row_) * 64 + column_;
        *reinterpret_cast<float4*>(to) = {s[0], s[1], s[2], s[3]};
        *reinterpret_cast<float4*>(to + 32) = {s[4], s[5], s[6], s[7]};
      }
      __syncwarp();
#pragma unroll 1
      for (int item = lane; item < 8 * 16; item += 32) {
        const int row = item / 16, column = item % 16 * 4;
        const std::int64_t m = first_m_ + warp_m_ + i * 4 + row, n = first_n_ + warp_n_ + column;
        if (m < p_.args.m && n < p_.n)
          write_four(p_, m, n, *reinterpret_cast<const float4*>(strip + row * 64 + column));
      }
      __syncwarp();
    }
  }

  const LinearProblem& p_;
  const std::int64_t first_m_, first_n_;
  float* shared_;
  int warp_m_, warp_n_, row_, column_;
  uint4 held_[kUnits];
  float sums_[8][8] = {};
};

// Blocks that run at the same time share channels: down the rows first.
template <class Tile, class T, bool kVector>
__global__ void __launch_bounds__(Tile::kThreads, kVector ? Tile::kBlocks : Tile::kBlocks * 2 / 3)
    tile_product(const __grid_constant__ LinearProblem p, unsigned tiles_m) {
  cuda::in_order();
  __shared__ __align__(128) float shared[2 * Tile::kBuffer];
  FloatTileProduct<Tile, T, kVector>(p, std::int64_t{blockIdx.x % tiles_m} * Tile::kM,
                                     std::int64_t{blockIdx.x / tiles_m} * Tile::kN, shared)
      .run();
}

}  // namespace oasr::kernels::cuda
