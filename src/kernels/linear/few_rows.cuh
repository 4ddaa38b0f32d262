// linear() for few rows, as fast as weights can be read.
//
// A block is one warp, with a panel of 32 channels and up to kRows rows of x. The panel goes through a ring
// of buffers in shared memory, kStages pieces of kPiece bytes, and pieces of x with it: enough on their way
// that memory is never idle. A lane has kChannels neighbouring channels of kLaneRows rows, so that it reads
// few values for many sums; each is one chain over k, in rising order.
#pragma once

#include "kernels/linear/cuda_common.cuh"

namespace oasr::kernels::cuda {

template <class T, int Rows, int Piece>
struct FewRows {
  static constexpr int kRows = Rows, kPanel = 32;
  static constexpr int kLaneRows = Rows == 1 ? 1 : 2, kChannels = Rows / kLaneRows;
  static constexpr int kPiece = Piece;                                          // bytes of weight
  static constexpr int kDepth = kPiece / kPanel / static_cast<int>(sizeof(T));  // k of a piece
  static constexpr int kStride =
      kDepth + 4;  // floats of a row of x: no two that are read at once in one bank
  static constexpr int kBuffer = kPiece + (kRows * kStride * 4 + 127) / 128 * 128;
  // As many as a multiprocessor has room for, where all of its blocks are to run at once.
  static constexpr int kStages = kPiece > 2048 ? 8 : (kRows > 4 ? 4 : 6);
  static constexpr int kShared = kStages * kBuffer;
  static_assert(kRows == 1 || kRows == 4 || kRows == 8);
};

// kCount neighbouring weights as floats.
template <int kCount>
__device__ void read_weights(const float* from, float (&to)[kCount]) {
  if constexpr (kCount == 4) {
    const float4 v = *reinterpret_cast<const float4*>(from);
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
  } else if constexpr (kCount == 2) {
    const float2 v = *reinterpret_cast<const float2*>(from);
    to[0] = v.x, to[1] = v.y;
  } else {
    to[0] = *from;
  }
}
template <int kCount, class T>
__device__ void read_weights(const T* from, float (&to)[kCount]) {
  if constexpr (kCount == 1) {
    to[0] = widen(*from);
  } else {
    struct alignas(sizeof(T) * kCount) Several {
      T values[kCount];
    };
    const Several v = *reinterpret_cast<const Several*>(from);
#pragma unroll
    for (int i = 0; i < kCount; ++i) to[i] = widen(v.values[i]);
  }
}

template <class Shape, class T, bool kVector>
class FewRowsProduct {
  static constexpr int kDepth = Shape::kDepth, kChannels = Shape::kChannels, kLaneRows = Shape::kLaneRows;

 public:
  __device__ FewRowsProduct(const LinearProblem& p, std::int64_t panel, std::int64_t m, std::byte* shared)
      : p_(p),
        panel_(panel),
        m_(m),
        channel_(threadIdx.x * kChannels % 32),
        row_(threadIdx.x * kChannels / 32 * kLaneRows),
        shared_(shared),
        ring_(shared_address(shared)),
        weight_(static_cast<const std::byte*>(p.weight) + panel * p.k * Shape::kPanel * sizeof(T)),
        weight_bytes_(p.k * Shape::kPanel * static_cast<std::int64_t>(sizeof(T))) {}

  __device__ void run() {
    const int pieces = static_cast<int>((p_.k + kDepth - 1) / kDepth);
#pragma unroll
    for (int s = 0; s < Shape::kStages - 1; ++s) {
      if (s < pieces) load(s, s);
      copy_async_commit();
    }
    int read = 0, written = Shape::kStages - 1;  // buffers of the ring
    for (int s = 0; s < pieces; ++s) {
      copy_async_wait<Shape::kStages - 2>();
      __syncwarp();  // the piece is there for all lanes, and none reads the one before it any more
      if (s + Shape::kStages - 1 < pieces) load(s + Shape::kStages - 1, written);
      copy_async_commit();
      const std::int64_t left = p_.k - std::int64_t{s} * kDepth;
      multiply(shared_ + read * Shape::kBuffer, left < kDepth ? static_cast<int>(left) : kDepth);
      if (++read == Shape::kStages) read = 0;
      if (++written == Shape::kStages) written = 0;
    }
#pragma unroll
    for (int r = 0; r < kLaneRows; ++r) {
      const std::int64_t m = m_ + row_ + r;
      if (m >= p_.args.m) return;
#pragma unroll
      for (int c = 0; c < kChannels; ++c) {
        const std::int64_t n = panel_ * Shape::kPanel + channel_ + c;
        if (n < p_.n) p_.args.y[m * p_.args.ldy + n] = linear_output(p_.args, m, n, sums_[r][c]);
      }
    }
  }

 private:
  // Piece s into a buffer; what is after the last k is not read.
  __device__ void load(int s, int buffer) const {
    const int lane = threadIdx.x;
    const unsigned to = ring_ + buffer * Shape::kBuffer;
    const std::int64_t first = std::int64_t{s} * Shape::kPiece + lane * 16;
    const std::byte* from = weight_ + first;
#pragma unroll
    for (int i = 0; i < Shape::kPiece / 512; ++i) {
      if (first + i * 512 < weight_bytes_) copy_async_16(to + lane * 16 + i * 512, from + i * 512);
    }
    constexpr int kWidth = kVector ? 4 : 1;  // floats of a copy
    constexpr int kCopies = Shape::kRows * kDepth / kWidth;
#pragma unroll
    for (int j = 0; j < (kCopies + 31) / 32; ++j) {
      const int i = j * 32 + lane;
      if (kCopies % 32 != 0 && i >= kCopies) break;
      const int r = i / (kDepth / kWidth), column = i % (kDepth / kWidth) * kWidth;
      const std::int64_t m = m_ + r, k = std::int64_t{s} * kDepth + column;
      if (m >= p_.args.m || k >= p_.k) continue;  // what is there then changes no output
      const unsigned at = to + Shape::kPiece + (r * Shape::kStride + column) * 4;
      const float* x = p_.args.x + m * p_.args.ldx + k;
      if constexpr (kVector) {
        copy_async_16_shared(at, x, static_cast<int>(p_.k - k < 4 ? p_.k - k : 4) * 4);
      } else {
        copy_async_4(at, x);
      }
    }
  }

  __device__ void multiply(const std::byte* buffer, int depth) {
    const T* w = reinterpret_cast<const T*>(buffer) + channel_;
    const float* x = reinterpret_cast<const float*>(buffer + Shape::kPiece) + row_ * Shape::kStride;
    int k = 0;
#pragma unroll 4
    for (; k + 8 <= depth; k += 8) {
      float weights[8][kChannels];
      float4 four[kLaneRows][2];
#pragma unroll
      for (int j = 0; j < 8; ++j) read_weights(w + (k + j) * Shape::kPanel, weights[j]);
#pragma unroll
      for (int r = 0; r < kLaneRows; ++r) {
        four[r][0] = *reinterpret_cast<const float4*>(x + r * Shape::kStride + k);
        four[r][1] = *reinterpret_cast<const float4*>(x + r * Shape::kStride + k + 4);
      }
#pragma unroll
      for (int j = 0; j < 8; j += 4) {
        add(four, j / 4, weights[j], weights[j + 1], weights[j + 2], weights[j + 3]);
      }
    }
    for (; k < depth; ++k) {
      float weights[kChannels];
      read_weights(w + k * Shape::kPanel, weights);
#pragma unroll
      for (int r = 0; r < kLaneRows; ++r) {
#pragma unroll
        for (int c = 0; c < kChannels; ++c)
          sums_[r][c] = __fmaf_rn(x[r * Shape::kStride + k], weights[c], sums_[r][c]);
      }
    }
  }

  // Four k, in order.
  __device__ void add(const float4 (&x)[kLaneRows][2], int half, const float (&w0)[kChannels],
                      const float (&w1)[kChannels], const float (&w2)[kChannels],
                      const float (&w3)[kChannels]) {
#pragma unroll
    for (int r = 0; r < kLaneRows; ++r) {
#pragma unroll
      for (int c = 0; c < kChannels; ++c) {
        float& sum = sums_[r][c];
        sum = __fmaf_rn(x[r][half].x, w0[c], sum);
        sum = __fmaf_rn(x[r][half].y, w1[c], sum);
        sum = __fmaf_rn(x[r][half].z, w2[c], sum);
        sum = __fmaf_rn(x[r][half].w, w3[c], sum);
      }
    }
  }

  const LinearProblem& p_;
  const std::int64_t panel_, m_;
  const int channel_, row_;
  const std::byte* shared_;
  const unsigned ring_;
  const std::byte* weight_;
  const std::int64_t weight_bytes_;
  float sums_[kLaneRows][kChannels] = {};
};

template <class Shape, class T, bool kVector>
__global__ void __launch_bounds__(32) few_rows_product(const __grid_constant__ LinearProblem p) {
  cuda::in_order();
  extern __shared__ __align__(128) std::byte shared[];
  FewRowsProduct<Shape, T, kVector>(p, blockIdx.x, std::int64_t{blockIdx.y} * Shape::kRows, shared).run();
}

}  // namespace oasr::kernels::cuda
