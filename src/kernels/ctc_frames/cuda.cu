#include <algorithm>
#include <cstring>
#include <vector>

#include "decode/log_math.h"
#include "decode/softmax_exp.h"
#include "kernels/ctc_frames/cuda.h"
#include "kernels/cuda/exact.cuh"
#include "kernels/cuda/launch.cuh"

namespace oasr::kernels {
namespace {

constexpr unsigned kWarp = 32, kWarps = 8, kThreads = kWarp * kWarps;  // of a block that works on one row
constexpr unsigned kWarpMask = 0xffff'ffffu;
constexpr int kLanes = 8, kBlock = 64;  // of the sums: chains, and logits of a block

struct ReduceParameters {
  const float* x;
  std::int64_t stride;
  int size, width;
  TokenId blank;
  CtcFrameRows out;
};

// A log-probability and its token as one number: the greater comes first.
using Key = unsigned long long;

__device__ Key key_of(float p, unsigned token) {
  const unsigned bits = __float_as_uint(__fadd_rn(p, 0.0f));  // -0 and +0 are equals
  const unsigned rising = bits ^ ((bits >> 31) != 0 ? 0xffff'ffffu : 0x8000'0000u);
  return (Key{rising} << 32) | (0xffff'ffffu - token);
}
__device__ unsigned token_of(Key key) { return 0xffff'ffffu - static_cast<unsigned>(key); }

// The greatest value of the block's threads, in all of them. `shared` must not be that of the call before: a slow
// thread may still read there.
template <class T>
__device__ T greatest_of_block(T value, T (&shared)[kWarps]) {
  for (unsigned step = kWarp / 2; step > 0; step /= 2) {
    const T other = __shfl_xor_sync(kWarpMask, value, step);
    value = other > value ? other : value;
  }
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = value;
  __syncthreads();
  value = shared[0];
  for (unsigned warp = 1; warp < kWarps; ++warp) value = shared[warp] > value ? shared[warp] : value;
  return value;
}

// sums[b] = the sum over block b of exp(x - greatest). Eight neighbours have a block's eight chains.
__device__ void sum_blocks(const float* x, int size, float greatest, float* sums) {
  const int blocks = (size + kBlock - 1) / kBlock, lane = static_cast<int>(threadIdx.x) % kLanes;
  constexpr int kAtOnce = static_cast<int>(kThreads) / kLanes;
  for (int first = 0; first < blocks; first += kAtOnce) {  // all threads as often: they exchange numbers
    const int block = first + static_cast<int>(threadIdx.x) / kLanes;
    const int left = block < blocks ? size - block * kBlock : 0, count = left < kBlock ? left : kBlock;
    const int whole = count / kLanes * kLanes;
    const float* logits = x + static_cast<std::int64_t>(block) * kBlock;
    float sum = 0.0f;
    for (int i = lane; i < whole; i += kLanes) sum = __fadd_rn(sum, decode::softmax_exp(__fsub_rn(logits[i], greatest)));
    if (lane == 0) {
      for (int i = whole; i < count; ++i) sum = __fadd_rn(sum, decode::softmax_exp(__fsub_rn(logits[i], greatest)));
    }
    sum = __fadd_rn(sum, __shfl_xor_sync(kWarpMask, sum, 4));
    sum = __fadd_rn(sum, __shfl_xor_sync(kWarpMask, sum, 1));
    sum = __fadd_rn(sum, __shfl_xor_sync(kWarpMask, sum, 2));
    if (lane == 0 && block < blocks) sums[block] = sum;
  }
}

// log Σ exp(x), by one thread from the sums of blocks.
__device__ float log_of_sums(const float* sums, int size, float greatest) {
  double sum = 0;
  for (int block = 0; block * kBlock < size; ++block) sum = __dadd_rn(sum, double{sums[block]});
  return static_cast<float>(__dadd_rn(double{greatest}, decode::log_of(sum)));
}

__device__ void write_not_finite(const ReduceParameters& p, std::int64_t row) {
  const float nan = __uint_as_float(0x7fc0'0000u);
  for (int k = static_cast<int>(threadIdx.x); k < p.width; k += kThreads) p.out.likeliest[row * p.width + k] = {0, nan};
  if (threadIdx.x == 0) p.out.norms[row] = p.out.blanks[row] = nan;
}

// A thread knows the greatest of its own logits; whose is the greatest of all looks for its next one.
__device__ void write_likeliest(const ReduceParameters& p, std::int64_t row, float norm, Key mine) {
  __shared__ Key greatest[2][kWarps];
  const float* x = p.x + row * p.stride;
  for (int k = 0; k < p.width; ++k) {
    const Key best = greatest_of_block(mine, greatest[k % 2]);
    const unsigned token = token_of(best);
    if (token % kThreads != threadIdx.x) continue;
    p.out.likeliest[row * p.width + k] = {static_cast<TokenId>(token), __fsub_rn(x[token], norm)};
    mine = 0;
    for (unsigned v = threadIdx.x; v < static_cast<unsigned>(p.size); v += kThreads) {
      const Key key = key_of(__fsub_rn(x[v], norm), v);
      if (key < best && key > mine) mine = key;
    }
  }
}

__global__ void __launch_bounds__(kThreads) reduce(ReduceParameters p) {
  cuda::in_order();
  extern __shared__ float sums[];
  __shared__ float greatest_of_warps[kWarps];
  __shared__ float shared_norm;
  const std::int64_t row = blockIdx.x;
  const float* x = p.x + row * p.stride;
  const unsigned size = static_cast<unsigned>(p.size);
  float greatest = -INFINITY;
  bool bad = false;
  for (unsigned v = threadIdx.x; v < size; v += kThreads) {
    bad = bad || !cuda::is_finite(x[v]);
    greatest = x[v] > greatest ? x[v] : greatest;
  }
  if (__syncthreads_or(bad)) return write_not_finite(p, row);
  greatest = greatest_of_block(greatest, greatest_of_warps);
  sum_blocks(x, p.size, greatest, sums);
  __syncthreads();
  if (threadIdx.x == 0) shared_norm = log_of_sums(sums, p.size, greatest);
  __syncthreads();
  const float norm = shared_norm;
  Key mine = 0;  // less than any
  for (unsigned v = threadIdx.x; v < size; v += kThreads) {
    const float log_prob = __fsub_rn(x[v], norm);
    bad = bad || !cuda::is_finite(log_prob);
    const Key key = key_of(log_prob, v);
    mine = key > mine ? key : mine;
  }
  if (__syncthreads_or(bad)) return write_not_finite(p, row);
  if (threadIdx.x == 0) {
    p.out.norms[row] = norm;
    p.out.blanks[row] = __fsub_rn(x[p.blank], norm);
  }
  write_likeliest(p, row, norm, mine);
}

// A piece in memory of the device, followed by its tokens of the frame before.
struct PassedPiece {
  std::int32_t first = 0, rows = 0, has_before = 0;
};
constexpr int kPassedWords = sizeof(PassedPiece) / sizeof(std::int32_t);

// A thread, a number.
__global__ void __launch_bounds__(kThreads) look_again(ReduceParameters p, const std::int32_t* passed) {
  cuda::in_order();
  const std::int32_t* words = passed + static_cast<std::int64_t>(blockIdx.x) * (kPassedWords + p.width);
  const std::int64_t first = words[0], rows = words[1];
  const std::int64_t at = std::int64_t{blockIdx.y} * kThreads + threadIdx.x;
  if (at >= rows * p.width) return;
  const std::int64_t row = first + at / p.width, k = at % p.width;
  TokenId token = 0;
  if (row > first) {
    token = p.out.likeliest[(row - 1) * p.width + k].token;
  } else if (words[2] != 0) {
    token = words[kPassedWords + k];
  }
  p.out.again[row * p.width + k] = __fsub_rn(p.x[row * p.stride + token], p.out.norms[row]);
}

// Pieces whose arguments are passed at a time: 256 KiB of them, or one.
std::size_t most_pieces(int width) {
  const std::size_t bytes = static_cast<std::size_t>(kPassedWords + width) * sizeof(std::int32_t);
  return std::max<std::size_t>(1, (std::size_t{256} << 10) / bytes);
}

// first: the row of the first piece; then of the one after the last.
std::vector<std::int32_t> words_of(std::span<const CtcPiece> pieces, int width, std::int32_t& first) {
  std::vector<std::int32_t> words(pieces.size() * static_cast<std::size_t>(kPassedWords + width));
  std::int32_t* at = words.data();
  for (const CtcPiece& piece : pieces) {
    const PassedPiece passed{first, static_cast<std::int32_t>(piece.rows), piece.before.empty() ? 0 : 1};
    std::memcpy(at, &passed, sizeof passed);
    std::ranges::copy(piece.before, at + kPassedWords);
    first += passed.rows;
    at += kPassedWords + width;
  }
  return words;
}

}  // namespace

void ctc_frames_cuda(Gpu& gpu, const CtcFramesArgs& args) {
  const std::int64_t blocks = cuda::divide_up(args.logits.columns, kBlock);
  CHECK(blocks <= 12'000, "a vocabulary whose sums of blocks fit into shared memory");
  const ReduceParameters p{.x = args.logits.data,
                           .stride = args.logits.stride,
                           .size = static_cast<int>(args.logits.columns),
                           .width = args.width,
                           .blank = args.blank,
                           .out = args.out};
  cuda::launch(gpu, "ctc_frames", reduce, {.x = args.logits.rows}, kThreads,
               static_cast<std::size_t>(blocks) * sizeof(float), p);
  std::int32_t first = 0;
  for (std::span<const CtcPiece> left = args.pieces; !left.empty();) {
    const auto pieces = left.first(std::min(left.size(), most_pieces(args.width)));
    left = left.subspan(pieces.size());
    std::int64_t longest = 0;
    for (const CtcPiece& piece : pieces) longest = std::max(longest, piece.rows);
    const std::vector<std::int32_t> words = words_of(pieces, args.width, first);
    const auto* passed = static_cast<const std::int32_t*>(gpu.pass(words.data(), words.size() * sizeof(std::int32_t)));
    cuda::launch(gpu, "ctc_frames_again", look_again,
                 {.x = static_cast<std::int64_t>(pieces.size()), .y = cuda::divide_up(longest * args.width, kThreads)},
                 kThreads, 0, p, passed);
  }
}

}  // namespace oasr::kernels
