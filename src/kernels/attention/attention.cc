#include <algorithm>

#include "kernels/attention/cuda.h"
#include "kernels/attention/layout.h"
#include "kernels/lane_choice.h"

namespace oasr::kernels {
namespace {

// Queries of an item: enough to use a panel of keys several times while it is in the first-level
// cache, few enough that their numerators stay in the second.
constexpr std::int64_t kItemQueries = 48;

void check(const AttentionArgs& a) {
  CHECK(a.kv->length >= (a.causal ? a.queries : 1), "every query sees a position");
  CHECK(a.positions == nullptr ||
            (a.positions->heads == a.kv->heads && a.positions->head_dim == a.kv->head_dim &&
             a.positions->storage == a.kv->storage && a.positions->length >= a.kv->length),
        "position keys of another shape than the keys");
}

}  // namespace

Status check_encoder_heads(const ExecContext& context, int head_dim) {
  if (context.arithmetic == Arithmetic::float32 || head_dim <= kMixedMostDim) return {};
  return unexpected(ErrorCode::unsupported,
                    "the encoder's heads have " + std::to_string(head_dim) + " channels, and attention in " +
                        std::string(arithmetic_name(context.arithmetic)) + " at most " + std::to_string(kMixedMostDim),
                    "arithmetic", "use --arithmetic float32");
}

const AttentionLane& attention_lane(Isa isa) { return choose_lane(attention_lanes(), isa); }

std::int64_t attention_scratch(std::int64_t queries, const KvCache& kv) {
  return queries * (score_stride(kv.length) + kOutStride + 2 * kv.head_dim + 1);
}

void attention_reserve(ExecContext& context, KvCache cache) {
  if (context.gpu != nullptr || runs_reference(context)) return;  // its scratch memory grows at the first call
  cache.length = cache.capacity;
  const auto floats = static_cast<std::size_t>(attention_scratch(kItemQueries, cache));
  for (int thread = 0; thread < context.pool->threads(); ++thread) {
    context.pool->scratch(thread, floats * sizeof(float));
  }
}

void attention(ExecContext& context, std::span<const AttentionArgs> sequences) {
  for (const AttentionArgs& a : sequences) check(a);
  if (context.gpu != nullptr) return attention_cuda(*context.gpu, sequences, context.arithmetic);
  if (runs_reference(context)) {
    for (const AttentionArgs& a : sequences) attention_reference(a);
    return;
  }
  const auto run = attention_lane(context.isa).run;
  // Items of all sequences are numbered one after the other: head after head, block after block.
  // A sequence is found again by a walk: there are few, and an item is long.
  const auto blocks = [](const AttentionArgs& a) { return (a.queries + kItemQueries - 1) / kItemQueries; };
  std::int64_t items = 0, floats = 0;
  for (const AttentionArgs& a : sequences) {
    items += a.kv->heads * blocks(a);
    floats = std::max(floats, attention_scratch(std::min(a.queries, kItemQueries), *a.kv));
  }
  // Sized for every thread now, so that a later call allocates nothing whoever takes which item.
  const std::size_t bytes = static_cast<std::size_t>(floats) * sizeof(float);
  for (int t = 0; t < context.pool->threads(); ++t) context.pool->scratch(t, bytes);
  context.pool->parallel_for(items, [&](std::int64_t item, int thread) {
    const AttentionArgs* a = sequences.data();
    for (; item >= a->kv->heads * blocks(*a); ++a) item -= a->kv->heads * blocks(*a);
    const std::int64_t q0 = item % blocks(*a) * kItemQueries;
    const std::int64_t q1 = std::min(a->queries, q0 + kItemQueries);
    const auto scratch = context.pool->scratch(thread, bytes);
    run(*a, item / blocks(*a), q0, q1, reinterpret_cast<float*>(scratch.data()));
  });
}

}  // namespace oasr::kernels
