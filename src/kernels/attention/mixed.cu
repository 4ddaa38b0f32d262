#include "kernels/attention/mixed.h"

#include <algorithm>

#include "kernels/attention/mixed_queries.cuh"
#include "tensor/exact_poly.h"

namespace oasr::kernels {
namespace {

using cuda::MixedSequences;

constexpr int kSmallDim = 64, kLargeDim = kMixedMostDim;  // heads of fewer have zeros

int padded_dim(int dim) { return dim <= kSmallDim ? kSmallDim : kLargeDim; }
bool alike(const AttentionArgs& a, const AttentionArgs& b) {
  return a.kv->heads == b.kv->heads && a.kv->head_dim == b.kv->head_dim && a.kv->storage == b.kv->storage &&
         (a.positions == nullptr) == (b.positions == nullptr);
}

// The sequences of one launch: those that are alike, up to the first that is not or for which there is no room;
// `next` becomes the one to go on from.
struct Batch {
  MixedSequences sequences{};
  const AttentionArgs* first = nullptr;

  int parts() const { return first->positions != nullptr ? 3 : 2; }
  std::size_t tile_bytes() const {
    return static_cast<std::size_t>(cuda::kTileKeys * padded_dim(first->kv->head_dim) * 2 * parts());
  }
  std::size_t pieces() const {  // tiles of a head
    return static_cast<std::size_t>(sequences.count_tiles) * static_cast<std::size_t>(first->kv->heads);
  }
};

void take(std::span<const AttentionArgs> all, std::size_t& next, Batch& batch) {
  constexpr std::size_t kBytes = std::size_t{256} << 20;  // of scratch memory, unless one sequence needs more
  for (; next < all.size() && batch.sequences.of.count < cuda::Sequences::kMost; ++next) {
    const AttentionArgs& args = all[next];
    if (!args.mixed || args.queries == 0) continue;
    CHECK(args.kv->head_dim <= kMixedMostDim && args.weights == nullptr, "what mixed precision has kernels for");
    if (batch.first != nullptr &&
        (!alike(*batch.first, args) || batch.pieces() * batch.tile_bytes() > kBytes)) {
      return;
    }
    if (batch.first == nullptr) batch.first = &args;
    MixedSequences& s = batch.sequences;
    s.first_tile[s.of.count] = s.count_tiles;
    s.count_tiles += static_cast<int>(cuda::divide_up(args.kv->length, cuda::kTileKeys));
    AttentionArgs scaled = args;
    scaled.scale *= exact::kLog2E;
    s.of.add(scaled, cuda::kMixedQueries);
  }
}

template <class E, class T, int kDim, bool kPositions>
void run(Gpu& gpu, Batch& batch) {
  MixedSequences& s = batch.sequences;
  const std::size_t tiles = batch.pieces() * batch.tile_bytes();
  std::byte* scratch = gpu.scratch(tiles + batch.pieces() * sizeof(unsigned long long));
  s.tiles = scratch;
  s.odd = reinterpret_cast<unsigned long long*>(scratch + tiles);
  s.not_finite = gpu.not_finite_row();
  cuda::launch(gpu, "attention", cuda::round_keys<E, T, kDim>, {.x = s.count_tiles, .y = s.of.heads},
               cuda::kMixedThreads, 0, s.pass(gpu), batch.parts());
  cuda::launch(gpu, "attention", cuda::mixed_queries<E, kDim, kPositions>, {.x = s.of.items},
               cuda::kMixedThreads, cuda::MixedQueries<E, kDim, kPositions>::kShared, s.pass(gpu));
}

template <class E, class T, int kDim>
void run(Gpu& gpu, Batch& batch) {
  return batch.first->positions != nullptr ? run<E, T, kDim, true>(gpu, batch) : run<E, T, kDim, false>(gpu, batch);
}

template <class E, class T>
void run(Gpu& gpu, Batch& batch) {
  return batch.first->kv->head_dim <= kSmallDim ? run<E, T, kSmallDim>(gpu, batch) : run<E, T, kLargeDim>(gpu, batch);
}

template <class E>
void run(Gpu& gpu, Batch& batch) {
  return batch.first->kv->storage == DType::f32 ? run<E, float>(gpu, batch) : run<E, Half>(gpu, batch);
}

}  // namespace

void attention_mixed_cuda(Gpu& gpu, std::span<const AttentionArgs> sequences, Arithmetic arithmetic) {
  CHECK(arithmetic != Arithmetic::float32, "an arithmetic of the matrix units");
  for (std::size_t next = 0; next < sequences.size();) {
    Batch batch;
    take(sequences, next, batch);
    if (batch.first == nullptr) return;
    if (arithmetic == Arithmetic::float16) {
      run<Half>(gpu, batch);
    } else {
      run<BFloat16>(gpu, batch);
    }
  }
}

}  // namespace oasr::kernels
