#include <cstring>

#include "base/check.h"
#include "kernels/attention/cuda.h"
#include "kernels/attention/layout.h"

namespace oasr::kernels {
namespace {

constexpr std::int64_t kLeast = 30'000;  // elements: below, a hand-out costs more than it brings

void check_storage(DType storage) {
  CHECK(storage == DType::f32 || storage == DType::f16, "a cache is float32 or float16");
}

void check_copy(const KvCache& from, const KvCache& to, std::int64_t length) {
  CHECK(from.heads == to.heads && from.head_dim == to.head_dim && from.storage == to.storage &&
            from.keys_only == to.keys_only,
        "caches of one geometry");
  CHECK(length <= from.length && length <= to.capacity, "positions that are there");
}

void check_drop(const KvCache& cache, std::int64_t count) {
  CHECK(count >= 0 && count <= cache.length, "positions that are there");
}

}  // namespace

std::size_t kv_cache_bytes(int heads, int head_dim, std::int64_t capacity, DType storage) {
  check_storage(storage);
  CHECK(heads > 0 && head_dim > 0 && head_dim % 8 == 0 && capacity >= 0, "the geometry of a cache");
  return static_cast<std::size_t>(KvLayout(head_dim, capacity).keys(heads)) * dtype_size(storage) + kOverrun;
}

void kv_append(ExecContext& context, std::span<const AppendArgs> appends) {
  for (const AppendArgs& args : appends) CHECK(args.kv->length + args.count <= args.kv->capacity, "the cache is full");
  if (context.gpu != nullptr) {
    kv_append_cuda(*context.gpu, appends);
  } else {
    const auto append = attention_lane(context.isa).append;
    for (const AppendArgs& args : appends) {
      const std::int64_t heads = args.kv->heads;
      if (args.count * heads * args.kv->head_dim < kLeast) {
        for (std::int64_t head = 0; head < heads; ++head) append(args, head);
      } else {
        context.pool->parallel_for(heads, [&](std::int64_t head, int) { append(args, head); });
      }
    }
  }
  for (const AppendArgs& args : appends) args.kv->length += args.count;
}

void kv_append(ExecContext& context, KvCache& cache, const float* k, std::int64_t ldk,
               const float* v, std::int64_t ldv, std::int64_t count) {
  const AppendArgs args{.kv = &cache, .k = k, .ldk = ldk, .v = v, .ldv = ldv, .count = count};
  kv_append(context, {&args, 1});
}

void kv_copy(ExecContext& context, std::span<const CopyArgs> copies) {
  if (context.gpu != nullptr) {
    for (const CopyArgs& args : copies) check_copy(*args.from, *args.to, args.length);
    kv_copy_cuda(*context.gpu, copies);
    for (const CopyArgs& args : copies) args.to->length = args.length;
    return;
  }
  context.pool->parallel_for(static_cast<std::int64_t>(copies.size()), [&](std::int64_t i, int) {
    const CopyArgs& args = copies[static_cast<std::size_t>(i)];
    kv_copy(*args.from, *args.to, args.length);
  });
}

void kv_copy(const KvCache& from, KvCache& to, std::int64_t length) {
  check_copy(from, to, length);
  const KvLayout source(from), target(to);
  const std::size_t element = dtype_size(from.storage);
  const std::int64_t panels = (length + kKeys - 1) / kKeys * kKeys;  // whole panels: keys interleave
  const auto copy = [&](std::int64_t to_at, std::int64_t from_at, std::int64_t rows) {
    std::memmove(to.data + static_cast<std::size_t>(to_at) * element,
                 from.data + static_cast<std::size_t>(from_at) * element,
                 static_cast<std::size_t>(rows * from.head_dim) * element);
  };
  for (std::int64_t head = 0; head < from.heads; ++head) {
    copy(target.keys(head), source.keys(head), panels);
    if (!from.keys_only) copy(target.values(head), source.values(head), length);
  }
  to.length = length;
}

void kv_drop_front(ExecContext& context, std::span<const DropArgs> drops) {
  if (context.gpu != nullptr) {
    for (const DropArgs& args : drops) check_drop(*args.kv, args.count);
    kv_drop_front_cuda(*context.gpu, drops);
    for (const DropArgs& args : drops) args.kv->length -= args.count;
    return;
  }
  context.pool->parallel_for(static_cast<std::int64_t>(drops.size()), [&](std::int64_t i, int) {
    kv_drop_front(*drops[static_cast<std::size_t>(i)].kv, drops[static_cast<std::size_t>(i)].count);
  });
}

void kv_drop_front(KvCache& cache, std::int64_t count) {
  check_drop(cache, count);
  if (count == 0) return;  // also of a cache without memory
  const KvLayout layout(cache);
  const std::size_t element = dtype_size(cache.storage);
  const auto at = [&](std::int64_t offset) { return cache.data + static_cast<std::size_t>(offset) * element; };
  const std::int64_t left = cache.length - count, dim = cache.head_dim;
  for (std::int64_t head = 0; head < cache.heads; ++head) {
    if (!cache.keys_only) {
      std::memmove(at(layout.value(head, 0, 0)), at(layout.value(head, count, 0)),
                   static_cast<std::size_t>(left * dim) * element);
    }
    if (count % kKeys == 0) {  // whole panels
      std::memmove(at(layout.key(head, 0, 0)), at(layout.key(head, count, 0)),
                   static_cast<std::size_t>((left + kKeys - 1) / kKeys * kKeys * dim) * element);
      continue;
    }
    for (std::int64_t j = 0; j < left; ++j) {
      for (std::int64_t d = 0; d < dim; ++d) {
        std::memcpy(at(layout.key(head, j, d)), at(layout.key(head, count + j, d)), element);
      }
    }
  }
  cache.length = left;
}

}  // namespace oasr::kernels
