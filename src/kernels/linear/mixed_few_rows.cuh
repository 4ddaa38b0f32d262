// linear() in mixed precision for few rows, as fast as weights can be read.
//
// A block is one warp, with a panel of 32 channels and up to 16 rows of x, the rows of one mma. The panel goes
// through a ring of buffers in shared memory, kStages pieces of kPiece bytes, and pieces of x with it: enough on
// their way that memory is never idle. A sum takes its k in steps of 16, in rising order, as in mixed_tiles.cuh.
#pragma once

#include "kernels/linear/mixed_common.cuh"

namespace oasr::kernels::cuda {

template <class T, int Piece>
struct MixedFewRows {
  static constexpr bool kFloats = sizeof(T) == 4;
  static constexpr int kRows = 16, kPanel = 32;
  static constexpr int kDepth = Piece / kPanel / static_cast<int>(sizeof(T));  // k of a piece
  static constexpr int kXStride = kDepth + 8;                                  // floats
  static constexpr int kWStride = kFloats ? (kPanel + 4) * 4 : kPanel * 2;     // bytes
  static constexpr int kX = kRows * kXStride * 4, kStage = kX + kDepth * kWStride;
  static constexpr int kStages = Piece > 2048 ? 8 : 6;
  static constexpr int kShared = kStages * kStage;
  static_assert(kDepth % 16 == 0);
  // Where chunk `chunk` of row k is.
  static __device__ int chunk_at(int k, int chunk) {
    return k * kWStride + (kFloats ? chunk : chunk ^ (k >> 1 & 3)) * 16;
  }
};

template <class E, class T, class Shape>
class MixedFewRowsProduct {
 public:
  __device__ MixedFewRowsProduct(const MixedProblem& problem, std::int64_t panel, std::int64_t m,
                                 std::byte* shared)
      : problem_(problem),
        p_(problem.of),
        panel_(panel),
        m_(m),
        rows_(p_.args.m - m < Shape::kRows ? static_cast<int>(p_.args.m - m) : Shape::kRows),
        lane_(threadIdx.x),
        shared_(shared),
        ring_(shared_address(shared)) {}

  __device__ void run() {
    constexpr int kAhead = Shape::kStages - 1;
    const int pieces = static_cast<int>((p_.k + Shape::kDepth - 1) / Shape::kDepth);
#pragma unroll
    for (int s = 0; s < kAhead; ++s) {
      if (s < pieces) load(s, s);
      copy_async_commit();
    }
    int read = 0, written = kAhead;  // buffers of the ring
    for (int s = 0; s < pieces; ++s) {
      copy_async_wait<kAhead - 1>();
      __syncwarp();  // the piece is there for all lanes, and none reads the one before it any more
      if (s + kAhead < pieces) load(s + kAhead, written);
      copy_async_commit();
      const std::int64_t left = p_.k - std::int64_t{s} * Shape::kDepth;
      multiply(read * Shape::kStage, left < Shape::kDepth ? static_cast<int>(left) : Shape::kDepth);
      if (++read == Shape::kStages) read = 0;
      if (++written == Shape::kStages) written = 0;
    }
    write(0);
    write(1);
  }

 private:
  // Piece s into a buffer; k after the last are zeros, rows after the last are not touched.
  __device__ void load(int s, int buffer) const {
    const unsigned to = ring_ + buffer * Shape::kStage;
    const std::int64_t first_k = std::int64_t{s} * Shape::kDepth;
    constexpr int kChunk = 16 / static_cast<int>(sizeof(T)), kInPanel = Shape::kPanel / kChunk;
    const T* weight = static_cast<const T*>(p_.weight) + panel_ * p_.k * Shape::kPanel;
#pragma unroll
    for (int i = 0; i < Shape::kDepth * kInPanel / 32; ++i) {
      const int k = (i * 32 + lane_) / kInPanel, chunk = lane_ % kInPanel;
      const bool there = first_k + k < p_.k;
      copy_async_16(to + Shape::kX + Shape::chunk_at(k, chunk),
                    there ? weight + (first_k + k) * Shape::kPanel + chunk * kChunk : weight, there ? 16 : 0);
    }
    if (p_.x_vectors) {
      load_x<4>(to, first_k);
    } else {
      load_x<1>(to, first_k);
    }
  }

  // kWidth: floats of a copy.
  template <int kWidth>
  __device__ void load_x(unsigned to, std::int64_t first_k) const {
    constexpr int kColumns = Shape::kDepth / kWidth;
#pragma unroll 4
    for (int i = lane_; i < rows_ * kColumns; i += 32) {
      const int row = i / kColumns, column = i % kColumns * kWidth;
      const std::int64_t k = first_k + column, left = p_.k - k;
      const int count = left >= kWidth ? kWidth : (left > 0 ? static_cast<int>(left) : 0);
      const float* from = count > 0 ? p_.args.x + (m_ + row) * p_.args.ldx + k : p_.args.x;
      const unsigned at = to + (row * Shape::kXStride + column) * 4;
      if constexpr (kWidth == 4) {
        copy_async_16_shared(at, from, count * 4);
      } else {
        copy_async_4(at, from, count * 4);
      }
    }
  }

  __device__ void multiply(int buffer, int depth) {
    const float* x = reinterpret_cast<const float*>(shared_ + buffer);
    const int row = lane_ / 4, column = lane_ % 4 * 2;
#pragma unroll 2
    for (int k = 0; k < depth; k += 16) {
      unsigned a[4];
      round_rows<E>(x, Shape::kXStride, row, k + column, a);
      // Of rows that are not there shared memory holds anything.
      if (row >= rows_) a[0] = a[2] = 0;
      if (row + 8 >= rows_) a[1] = a[3] = 0;
#pragma unroll
      for (int pair = 0; pair < 2; ++pair) {
        unsigned b[4];
        if constexpr (Shape::kFloats) {
          constexpr int kStride = Shape::kWStride / 4;
          const float* w = reinterpret_cast<const float*>(shared_ + buffer + Shape::kX) +
                           (k + column) * kStride + 16 * pair + row;
          round_column<E>(w, kStride, b[0], b[1]);
          round_column<E>(w + 8, kStride, b[2], b[3]);
        } else {
          load_columns(b, ring_ + buffer + Shape::kX +
                              Shape::chunk_at(k + lane_ % 16, 2 * pair + lane_ / 16));
#pragma unroll
          for (unsigned& word : b) word = as_operands<E, T>(word);
        }
        multiply_add<E>(sums_[2 * pair], a, b[0], b[1]);
        multiply_add<E>(sums_[2 * pair + 1], a, b[2], b[3]);
      }
    }
  }

  // The outputs of the lane's row of the upper or the lower eight.
  __device__ void write(int half) const {
    const LinearArgs& args = p_.args;
    const int row = lane_ / 4 + 8 * half;
    if (row >= rows_) return;
    const std::int64_t m = m_ + row, first = panel_ * Shape::kPanel + lane_ % 4 * 2;
    float v[8];
    bool finite = true;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const std::int64_t n = first + i / 2 * 8 + i % 2;
      v[i] = half == 0 ? sums_[i / 2][i % 2] : sums_[i / 2][2 + i % 2];
      finite = finite && is_finite(v[i]);
      if (args.bias != nullptr && n < p_.n) v[i] = __fadd_rn(v[i], args.bias[n]);
    }
    if (!finite) report_row(problem_.not_finite, problem_.first_row + m);
    activate_all(args.activation, v);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const std::int64_t n = first + i / 2 * 8 + i % 2;
      if (n >= p_.n) continue;
      args.y[m * args.ldy + n] =
          args.residual == nullptr ? v[i] : __fmaf_rn(args.alpha, v[i], args.residual[m * args.ldr + n]);
    }
  }

  const MixedProblem& problem_;
  const LinearProblem& p_;
  const std::int64_t panel_, m_;
  const int rows_, lane_;
  const std::byte* shared_;
  const unsigned ring_;
  float sums_[4][4] = {};
};

template <class E, class T, class Shape>
__global__ void __launch_bounds__(32) mixed_few_rows(const __grid_constant__ MixedProblem problem) {
  cuda::in_order();
  extern __shared__ __align__(128) std::byte shared[];
  MixedFewRowsProduct<E, T, Shape>(problem, blockIdx.x, std::int64_t{blockIdx.y} * Shape::kRows, shared).run();
}

}  // namespace oasr::kernels::cuda
