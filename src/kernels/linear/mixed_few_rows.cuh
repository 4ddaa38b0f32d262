// linear() in mixed precision for few rows, as fast as weights can be read.
//
// A block has up to 16 rows of x, the rows of one mma, and some neighbouring channels; its warps share the
// pieces of their sums. All that a piece needs is on its way to registers at once, without shared memory: a
// lane reads, of every k that it has in an operand, kChannels neighbouring channels, which are the lane's
// column in as many mma. So column g of mma j is channel kChannels · g + j. The pieces of all warps are then
// added in order.
#pragma once

#include "kernels/linear/mixed_common.cuh"

namespace oasr::kernels::cuda {

template <class E, class T, int Rows, int Channels>
struct MixedFewRows {
  static_assert((Rows == 8 || Rows == 16) && (Channels == 2 || Channels == 4));
  static constexpr int kRows = Rows;           // 8: the lower half of an mma
  static constexpr int kChannels = Channels;   // of a lane
  static constexpr int kWidth = 8 * Channels;  // channels of a block
  static constexpr int kSums = kRows * kWidth;
  // At most: a block of 512 threads has 128 registers a lane, which hold what a piece needs of operands as
  // stored.
  static constexpr int kWarps = Channels == 2 && (std::is_same_v<E, T> || Rows == 8) ? 16 : 8;
};

template <class E, class T, class Shape>
class MixedFewRowsProduct {
  static constexpr int kChannels = Shape::kChannels, kSteps = kMixedPiece / 16;
  struct alignas(sizeof(T) * kChannels) Weights {
    T of[kChannels];
  };

 public:
  __device__ MixedFewRowsProduct(const MixedProblem& problem, std::int64_t first_n, std::int64_t m,
                                 float4* shared)
      : problem_(problem),
        p_(problem.of),
        first_n_(first_n),
        m_(m),
        shared_(shared),
        warp_(threadIdx.x / 32),
        g_(threadIdx.x % 32 / 4),
        t_(threadIdx.x % 4) {}

  __device__ void run() {
    const int pieces = static_cast<int>((p_.k + kMixedPiece - 1) / kMixedPiece);
    const int warps = static_cast<int>(blockDim.x) / 32;
    for (int first = 0; first < pieces; first += warps) {
      if (first > 0) __syncthreads();  // the sums of the pieces before have been read
      if (first + warp_ < pieces) multiply(std::int64_t{first + warp_} * kMixedPiece);
      __syncthreads();
      const int left = pieces - first;
      add(first == 0, left <= warps, left < warps ? left : warps, shared_ + warps * (Shape::kSums / 4));
    }
  }

 private:
  // Numbers of a piece in registers: of step s, the rows of x and the weights that an operand's lane has.
  struct Piece {
    unsigned a[kSteps][4];
    Weights w[kSteps][4];
  };

  __device__ void multiply(std::int64_t first_k) {
    const std::int64_t left = p_.k - first_k;
    const int depth = left < kMixedPiece ? static_cast<int>(left) : kMixedPiece;
    Piece piece;
    if (depth == kMixedPiece && problem_.x_pairs) {
      load<true>(first_k, depth, piece);
    } else {
      load<false>(first_k, depth, piece);
    }
    float sums[kChannels][4] = {};
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      if (16 * s >= depth) break;  // no step of zeros: as many as in any other kernel
#pragma unroll
      for (int j = 0; j < kChannels; ++j) {
        multiply_add<E>(sums[j], piece.a[s], pair(piece.w[s][0].of[j], piece.w[s][1].of[j]),
                        pair(piece.w[s][2].of[j], piece.w[s][3].of[j]));
      }
    }
    float4* to = shared_ + warp_ * (Shape::kSums / 4);
#pragma unroll
    for (int half = 0; half < Shape::kRows / 8; ++half)
      put(sums, half, to + (g_ + 8 * half) * (Shape::kWidth / 4));
  }

  // kWhole: all of a piece is there, and x can be read two floats at a time. Else k after the last are zeros.
  // Rows after the last are read as the last: what they give is not written.
  template <bool kWhole>
  __device__ void load(std::int64_t first_k, int depth, Piece& piece) const {
    const T* w = static_cast<const T*>(p_.weight) + (first_n_ / 32 * p_.k + first_k) * 32 + first_n_ % 32 +
                 kChannels * g_;
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int k = k_of(s, i);
        if (kWhole || k < depth) {
          piece.w[s][i] = *reinterpret_cast<const Weights*>(w + k * 32);
        } else {
          piece.w[s][i] = {};
        }
      }
    }
    const LinearArgs& args = p_.args;
    const std::int64_t last = args.m - 1;
    const float* low = args.x + (m_ + g_ < last ? m_ + g_ : last) * args.ldx + first_k;
    const float* high = args.x + (m_ + g_ + 8 < last ? m_ + g_ + 8 : last) * args.ldx + first_k;
    float2 x[kSteps][4];
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        x[s][i] = {};
        if (i % 2 == 1 && Shape::kRows == 8) continue;
        const float* from = i % 2 == 0 ? low : high;
        const int k = k_of(s, i / 2 * 2);
        if constexpr (kWhole) {
          x[s][i] = *reinterpret_cast<const float2*>(from + k);
        } else {
          if (k < depth) x[s][i].x = from[k];
          if (k + 1 < depth) x[s][i].y = from[k + 1];
        }
      }
    }
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
#pragma unroll
      for (int i = 0; i < 4; ++i) piece.a[s][i] = round_two<E>(x[s][i].x, x[s][i].y);
    }
  }

  // The i-th of the four k that a lane has of an operand.
  __device__ int k_of(int step, int i) const { return 16 * step + 2 * t_ + i % 2 + i / 2 * 8; }

  // Two weights of a channel as a word of an operand.
  static __device__ unsigned pair(T low, T high) {
    if constexpr (sizeof(T) == 4) {
      return round_two<E>(low, high);
    } else {
      return as_operands<E, T>(low.bits | static_cast<unsigned>(high.bits) << 16);
    }
  }

  // The sums of the lane's row of the lower or the upper eight: 2 · kChannels neighbouring channels.
  __device__ void put(const float (&sums)[kChannels][4], int half, float4* row) const {
#pragma unroll
    for (int i = 0; i < kChannels / 2; ++i) {
      float v[4];
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int channel = 4 * i + c;
        v[c] = sums[channel % kChannels][2 * half + channel / kChannels];
      }
      row[kChannels / 2 * t_ + i] = {v[0], v[1], v[2], v[3]};
    }
  }

  // Adds the pieces of `count` warps to what `totals` has of those before, and keeps it there or writes it
  // out.
  __device__ void add(bool first, bool last, int count, float4* totals) const {
    constexpr int kFours = Shape::kSums / 4, kInRow = Shape::kWidth / 4;
    for (int i = threadIdx.x; i < kFours; i += blockDim.x) {
      float4 sum[1] = {first ? float4{} : totals[i]};
#pragma unroll 4
      for (int n = 0; n < count; ++n) {
        const float4 piece = shared_[n * kFours + i];
        sum[0].x = __fadd_rn(sum[0].x, piece.x);
        sum[0].y = __fadd_rn(sum[0].y, piece.y);
        sum[0].z = __fadd_rn(sum[0].z, piece.z);
        sum[0].w = __fadd_rn(sum[0].w, piece.w);
      }
      if (last) {
        write_rows(problem_, m_ + i / kInRow, 1, first_n_ + i % kInRow * 4, sum);
      } else {
        totals[i] = sum[0];
      }
    }
  }

  const MixedProblem& problem_;
  const LinearProblem& p_;
  const std::int64_t first_n_, m_;
  float4* shared_;  // sums of the warps' pieces, then, where a warp has several, the totals
  const int warp_, g_, t_;
};

template <class E, class T, class Shape>
__global__ void __launch_bounds__(32 * Shape::kWarps)
    mixed_few_rows(const __grid_constant__ MixedProblem problem) {
  cuda::in_order();
  extern __shared__ float4 sums_of_pieces[];
  MixedFewRowsProduct<E, T, Shape>(problem, std::int64_t{blockIdx.x} * Shape::kWidth,
                                   std::int64_t{blockIdx.y} * Shape::kRows, sums_of_pieces)
      .run();
}

}  // namespace oasr::kernels::cuda
