// softmax(scale · q kᵀ) v over a key/value cache, all heads, many sequences at once.
//
// Contract (every lane, any number of sequences, query rows, thread count: the same bits):
//   s(j)  = scale · (fma chain over d of q[d] · k[j][d], from +0; with positions it goes on over d of
//           q_position[d] · position[j][d]); where a shift is given, of q + q_shift and q_position + q_position_shift,
//           rounded to float32
//   p(j)  = exp(s(j) - max s), exact_math's exp; sum in the canonical tree of docs/numerics.md
//   o[d]  = (fma chain over j in rising order of p(j) · v[j][d], from +0) / sum
//
// Mixed precision (a GPU, ExecContext::arithmetic float16 or bfloat16) is for sequences that say `mixed`; others keep
// the contract above, whatever the context. Keys, values and scale · log2 e · q are rounded to 16 bits, so is p(j) =
// 2^(s(j) - greatest s up to the tile of j) for the product with the values, and the matrix units add in float32;
// outputs and the sum of p are scaled when the greatest s grows, after every 64 positions. The bits of a query are those
// of the card; they depend on the query and on what it sees, not on other queries, sequences, or memory behind the last
// position. A query that is not finite in 16 bits, or sees a key or value that is not, has NaN for outputs and is
// reported (Gpu::not_finite_row).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "device/thread_pool.h"
#include "tensor/dtype.h"

namespace oasr::kernels {

// Keys and values of one sequence and one layer, in the layout of the kernels. The memory is the
// caller's: kv_cache_bytes() of it, aligned to 64 bytes. Storage f32, or f16 (rounded on append).
struct KvCache {
  int heads = 0;
  int head_dim = 0;                // a multiple of 8
  std::int64_t capacity = 0;       // rounded up to a multiple of 16 by the layout
  std::int64_t length = 0;         // positions filled
  DType storage = DType::f32;
  std::byte* data = nullptr;
  bool keys_only = false;          // nobody appends values: they are neither copied nor moved
};
std::size_t kv_cache_bytes(int heads, int head_dim, std::int64_t capacity, DType storage);

// Appends `count` positions. Of one call every cache is another one: a GPU takes them all at once, and sets the free
// positions of the panels that it begins to zero.
struct AppendArgs {
  KvCache* kv = nullptr;
  const float* k = nullptr;  // [count, heads · head_dim], row stride ldk
  std::int64_t ldk = 0;
  const float* v = nullptr;  // [count, heads · head_dim], row stride ldv; null: the cache has keys only
  std::int64_t ldv = 0;
  std::int64_t count = 0;
};
void kv_append(ExecContext& context, std::span<const AppendArgs> appends);
void kv_append(ExecContext& context, KvCache& cache, const float* k, std::int64_t ldk,
               const float* v, std::int64_t ldv, std::int64_t count);

// Copies the first `length` positions of one cache to another of the same geometry. Of one call no cache is both a
// source and a target, or twice a target.
struct CopyArgs {
  const KvCache* from = nullptr;
  KvCache* to = nullptr;
  std::int64_t length = 0;
};
void kv_copy(ExecContext& context, std::span<const CopyArgs> copies);
void kv_copy(const KvCache& from, KvCache& to, std::int64_t length);  // on the host

// Forgets the first `count` positions; what was at position count is at 0 afterwards. Of one call every cache is
// another one.
struct DropArgs {
  KvCache* kv = nullptr;
  std::int64_t count = 0;
};
void kv_drop_front(ExecContext& context, std::span<const DropArgs> drops);
void kv_drop_front(KvCache& cache, std::int64_t count);  // on the host

struct AttentionArgs {
  const float* q = nullptr;      // [queries, heads · head_dim], row stride ldq
  std::int64_t ldq = 0;
  std::int64_t queries = 0;
  const KvCache* kv = nullptr;
  bool causal = false;           // query i sees positions [0, length - queries + i]
  float scale = 1.0f;
  // Relative positions, or null: a second query [queries, heads · head_dim], row stride ldq, and the keys
  // of a cache of the same heads that starts at the same position as kv and is at least as long.
  const float* q_position = nullptr;
  const KvCache* positions = nullptr;
  // Added to every query and second query (Transformer-XL's u and v), [heads · head_dim], or null.
  const float* q_shift = nullptr;
  const float* q_position_shift = nullptr;
  float* out = nullptr;          // [queries, heads · head_dim], row stride ldo
  std::int64_t ldo = 0;
  float* weights = nullptr;      // null, or softmax weights [heads, queries, length] written out
  // In mixed precision, where the context's arithmetic is that: for encoders, which have many queries (a decoder's
  // few wait for memory, not for arithmetic). Heads of at most kMixedMostDim, no weights.
  bool mixed = false;
};
inline constexpr int kMixedMostDim = 128;
// Whether an encoder's heads can be computed in the context's arithmetic.
Status check_encoder_heads(const ExecContext& context, int head_dim);

// Reserves the scratch memory of every thread for full caches like this one: attention() on them
// allocates nothing from the first call on.
void attention_reserve(ExecContext& context, KvCache cache);

// Runs all sequences on context.pool.
void attention(ExecContext& context, std::span<const AttentionArgs> sequences);

// A row of the lane table: one instruction set's code.
struct AttentionLane {
  std::string_view name;  // "avx512"
  Isa isa;
  // Computes queries [q0, q1) of one head. scratch: attention_scratch(q1 - q0, *args.kv) floats,
  // aligned to 64 bytes.
  void (*run)(const AttentionArgs& args, std::int64_t head, std::int64_t q0, std::int64_t q1,
              float* scratch);
  // Writes the keys and values of one head; the length stays.
  void (*append)(const AppendArgs& args, std::int64_t head);
};
std::span<const AttentionLane> attention_lanes();
// The lane that attention() uses for an Isa: the highest with lane.isa <= isa.
const AttentionLane& attention_lane(Isa isa);
std::int64_t attention_scratch(std::int64_t queries, const KvCache& kv);

// The definition: plain loops, single thread.
void attention_reference(const AttentionArgs& args);

}  // namespace oasr::kernels
