#include "kernels/ctc_beam/search.h"
#include "kernels/cuda/launch.cuh"

namespace oasr::kernels {
namespace {

using ctc_beam::NodeKey;

// The threads of a block. Items of the second function begin at the other end, so that its loads wait beside the
// arithmetic of the first.
struct Block {
  template <class F>
  __device__ void each(int n, const F& f) const {
    for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x)) f(i);
    __syncthreads();
  }
  template <class F, class G>
  __device__ void both(int n, const F& f, int m, const G& g) const {
    for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x)) f(i);
    for (int i = static_cast<int>(blockDim.x - 1 - threadIdx.x); i < m; i += static_cast<int>(blockDim.x)) g(i);
    __syncthreads();
  }
  static __device__ NodeKey claim(NodeKey* at, NodeKey key) { return atomicCAS(at, NodeKey{0}, key); }
};

// A block, an utterance.
__global__ void prefix_beam(CtcBeamArgs args, const CtcBeamUtterance* utterances) {
  cuda::in_order();
  __shared__ ctc_beam::Board board;
  const ctc_beam::Utterance utterance = ctc_beam::utterance_of(args, utterances[blockIdx.x], blockIdx.x);
  const Block team{};
  ctc_beam::Search<Block>(team, utterance, board).run();
}

}  // namespace

void ctc_prefix_beam(Gpu& gpu, const CtcBeamArgs& args) {
  CHECK(args.first_beam >= 1 && args.first_beam <= kMostCtcBeam && args.first_beam <= args.width,
        "a beam that the kernel has room for, of tokens that there are");
  CHECK(args.second_beam >= 1 && args.second_beam <= kMostCtcBeam, "a beam that the kernel has room for");
  const std::int64_t nodes = 2 * args.second_beam * args.rows;
  CHECK(nodes < 0x7fff'ffff, "frames whose prefixes have a number");
  std::int64_t searched = 0;  // rows
  for (const CtcBeamUtterance& utterance : args.utterances) {
    CHECK(utterance.frames > 0 && utterance.first_row >= 0 && utterance.first_row + utterance.frames <= args.rows,
          "utterances among the rows");
    searched += utterance.frames;
  }
  if (args.utterances.empty()) return;
  gpu.zero(args.memory.nodes, static_cast<std::size_t>(nodes) * sizeof(NodeKey));
  if (searched < args.rows) {  // the host reads the tokens of all
    gpu.zero(args.memory.tokens, static_cast<std::size_t>(args.second_beam * args.rows) * sizeof(CtcBeamToken));
  }
  const void* passed = gpu.pass(args.utterances.data(), args.utterances.size_bytes());
  // A thread for every candidate of a usual beam, of 10 hypotheses and 10 tokens.
  const unsigned threads = args.second_beam * (1 + args.first_beam) <= 128 ? 128 : 256;
  cuda::launch(gpu, "ctc_prefix_beam", prefix_beam, {.x = static_cast<std::int64_t>(args.utterances.size())}, threads, 0,
               args, static_cast<const CtcBeamUtterance*>(passed));
}

}  // namespace oasr::kernels
