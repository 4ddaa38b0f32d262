#include <algorithm>
#include <cstddef>

#include "kernels/attention/cuda.h"
#include "kernels/attention/layout.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/widen.cuh"

namespace oasr::kernels {
namespace {

constexpr int kThreads = 256;

// Caches of one launch, in memory of the device (Gpu::pass). A block works on one head of one of them (blockIdx.z
// and blockIdx.y); all have the same heads and storage.
template <class Item>
struct Items {
  static constexpr int kMost = 128;
  int count = 0, heads = 0, dim = 0;
  std::int64_t longest = 0;  // positions that an item moves
  Item at[kMost];

  const Items* pass(Gpu& gpu) const {
    const std::size_t bytes = offsetof(Items, at) + sizeof(Item) * static_cast<std::size_t>(count);
    return static_cast<const Items*>(gpu.pass(this, bytes));
  }
};

struct Append {
  std::byte* data;
  const float *k, *v;  // v: or null
  std::int64_t ldk, ldv, rows, first, count;
};
struct Copy {
  const std::byte* from;
  std::byte* to;
  std::int64_t from_rows, to_rows, count;
  bool keys_only;
};
struct Drop {
  std::byte* data;
  std::int64_t rows, dropped, left;
  bool keys_only;
};

// A block writes the positions of one panel of keys or of values (blockIdx.x: panel · 2 + which), turned in
// shared memory, [position][dim + 1]. A panel that it begins it writes to its end, free positions as zeros: panels are
// read whole.
template <class T>
__global__ void __launch_bounds__(kThreads) append(const Items<Append>* passed) {
  Append item;
  int dim;
  cuda::in_order([&] {
    item = passed->at[blockIdx.z];
    dim = passed->dim;
  });
  extern __shared__ float turned[];
  const int of_values = blockIdx.x % 2;
  const std::int64_t head = blockIdx.y, panel = item.first / kKeys + blockIdx.x / 2;
  const std::int64_t first = max(item.first, panel * kKeys), ld = of_values ? item.ldv : item.ldk;
  const int count = static_cast<int>(min(item.first + item.count, (panel + 1) * kKeys) - first);
  const float* from = of_values ? item.v : item.k;
  if (count <= 0 || from == nullptr) return;
  from += (first - item.first) * ld + head * dim;
  for (int j = threadIdx.x / 32; j < count; j += kThreads / 32) {
    for (int d = threadIdx.x % 32; d < dim; d += 32) turned[j * (dim + 1) + d] = from[j * ld + d];
  }
  __syncthreads();
  T* to = reinterpret_cast<T*>(item.data) + ((head * 2 + of_values) * item.rows + panel * kKeys) * dim;
  const int start = static_cast<int>(first - panel * kKeys);
  const int j = static_cast<int>(threadIdx.x % kKeys) - start;
  if (j < 0 || (j >= count && start > 0)) return;
  for (int d = threadIdx.x / kKeys; d < dim; d += kThreads / static_cast<int>(kKeys)) {
    to[d * kKeys + j + start] = cuda::narrow<T>(j < count ? turned[j * (dim + 1) + d] : 0.0f);
  }
}

// Whole panels of keys and of values.
template <class T>
__global__ void copy(const Items<Copy>* passed) {
  Copy item;
  int dim;
  cuda::in_order([&] {
    item = passed->at[blockIdx.z];
    dim = passed->dim;
  });
  const std::int64_t head = blockIdx.y;
  const T* from = reinterpret_cast<const T*>(item.from) + head * 2 * item.from_rows * dim;
  T* to = reinterpret_cast<T*>(item.to) + head * 2 * item.to_rows * dim;
  const std::int64_t count = (item.count + kKeys - 1) / kKeys * kKeys * dim;
  constexpr std::int64_t kInCopy = sizeof(int4) / sizeof(T);  // a divisor of a panel
  const std::int64_t i = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * kInCopy;
  if (i >= count) return;
  *reinterpret_cast<int4*>(to + i) = *reinterpret_cast<const int4*>(from + i);
  if (item.keys_only) return;
  *reinterpret_cast<int4*>(to + item.to_rows * dim + i) =
      *reinterpret_cast<const int4*>(from + item.from_rows * dim + i);
}

// Keys (blockIdx.x = 0) or values of one head move to the front within a cache. One block does it in rising
// order: a step is read before it is written, and what later steps read lies behind all that was written, or,
// of positions that stay in their panel, at another depth.
template <class T>
__global__ void __launch_bounds__(kThreads) drop_front(const Items<Drop>* passed) {
  Drop item;
  int dim;
  cuda::in_order([&] {
    item = passed->at[blockIdx.z];
    dim = passed->dim;
  });
  if (item.keys_only && blockIdx.x == 1) return;
  const std::int64_t head = blockIdx.y, panel = kKeys * dim;
  T* data = reinterpret_cast<T*>(item.data) + (head * 2 + blockIdx.x) * item.rows * dim;
  const std::int64_t end = (item.left + kKeys - 1) / kKeys * panel;
  constexpr int kEach = 8;  // elements of a thread in a step
  for (std::int64_t step = 0; step < end; step += kThreads * kEach) {
    T moved[kEach];
    bool there[kEach];
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const std::int64_t i = step + e * kThreads + threadIdx.x;
      const std::int64_t j = i / panel * kKeys + i % kKeys, d = i % panel / kKeys, source = item.dropped + j;
      there[e] = i < end && j < item.left;
      if (there[e]) moved[e] = data[source / kKeys * panel + d * kKeys + source % kKeys];
    }
    __syncthreads();
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      if (there[e]) data[step + e * kThreads + threadIdx.x] = moved[e];
    }
    __syncthreads();
  }
}

// Calls launch(items, storage) for the arguments, as many at a time as fit and are of one kind. make(args)
// gives the cache, the positions that move and what a kernel gets; what moves none is left out.
template <class Item, class Args, class F, class Launch>
void in_launches(std::span<const Args> all, F make, Launch launch) {
  Items<Item> items;
  DType storage = DType::f32;
  const auto flush = [&] {
    if (items.count > 0) launch(items, storage);
    items.count = 0;
    items.longest = 0;
  };
  for (const Args& args : all) {
    const auto [cache, moved, made] = make(args);
    if (moved == 0) continue;
    const bool alike =
        items.heads == cache->heads && items.dim == cache->head_dim && storage == cache->storage;
    if (!alike || items.count == Items<Item>::kMost) flush();
    items.heads = cache->heads;
    items.dim = cache->head_dim;
    storage = cache->storage;
    items.longest = std::max(items.longest, moved);
    items.at[items.count++] = made;
  }
  flush();
}

template <class Item>
struct Made {
  const KvCache* cache;
  std::int64_t moved;
  Item item;
};

template <class Item>
cuda::Grid grid(const Items<Item>& items, std::int64_t x) {
  return {.x = x, .y = items.heads, .z = items.count};
}

}  // namespace

void kv_append_cuda(Gpu& gpu, std::span<const AppendArgs> appends) {
  in_launches<Append>(
      appends,
      [](const AppendArgs& args) {
        const KvCache& kv = *args.kv;
        return Made<Append>{&kv,
                            args.count,
                            {.data = kv.data,
                             .k = args.k,
                             .v = args.v,
                             .ldk = args.ldk,
                             .ldv = args.ldv,
                             .rows = KvLayout(kv).rows,
                             .first = kv.length,
                             .count = args.count}};
      },
      [&](const Items<Append>& items, DType storage) {
        const auto panels = cuda::divide_up(items.longest, kKeys) + 1;  // the first may be one that is begun
        const std::size_t shared = sizeof(float) * kKeys * static_cast<std::size_t>(items.dim + 1);
        cuda::launch(gpu, "kv_append", storage == DType::f32 ? append<float> : append<Half>,
                     grid(items, 2 * panels), kThreads, shared, items.pass(gpu));
      });
}

void kv_copy_cuda(Gpu& gpu, std::span<const CopyArgs> copies) {
  in_launches<Copy>(
      copies,
      [](const CopyArgs& args) {
        return Made<Copy>{args.from,
                          args.length,
                          {.from = args.from->data,
                           .to = args.to->data,
                           .from_rows = KvLayout(*args.from).rows,
                           .to_rows = KvLayout(*args.to).rows,
                           .count = args.length,
                           .keys_only = args.from->keys_only}};
      },
      [&](const Items<Copy>& items, DType storage) {
        const std::int64_t bytes = cuda::divide_up(items.longest, kKeys) * kKeys * items.dim *
                                   static_cast<std::int64_t>(dtype_size(storage));
        cuda::launch(gpu, "kv_copy", storage == DType::f32 ? copy<float> : copy<Half>,
                     grid(items, cuda::divide_up(bytes, kThreads * static_cast<std::int64_t>(sizeof(int4)))),
                     kThreads, 0, items.pass(gpu));
      });
}

void kv_drop_front_cuda(Gpu& gpu, std::span<const DropArgs> drops) {
  in_launches<Drop>(
      drops,
      [](const DropArgs& args) {
        const KvCache& kv = *args.kv;
        const std::int64_t left = kv.length - args.count;
        return Made<Drop>{&kv,
                          args.count == 0 ? 0 : left,
                          {.data = kv.data,
                           .rows = KvLayout(kv).rows,
                           .dropped = args.count,
                           .left = left,
                           .keys_only = kv.keys_only}};
      },
      [&](const Items<Drop>& items, DType storage) {
        cuda::launch(gpu, "kv_drop_front", storage == DType::f32 ? drop_front<float> : drop_front<Half>,
                     grid(items, 2), kThreads, 0, items.pass(gpu));
      });
}

}  // namespace oasr::kernels
