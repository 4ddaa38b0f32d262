#include "cache/kv_pool.h"

#include "base/check.h"

namespace oasr::cache {

namespace {

// From one cache to the next.
std::size_t bytes_of_cache(const KvPool::Geometry& geometry) {
  const std::size_t one =
      kernels::kv_cache_bytes(geometry.heads, geometry.head_dim, geometry.capacity, geometry.storage);
  return (one + AlignedBuffer::kAlignment - 1) / AlignedBuffer::kAlignment * AlignedBuffer::kAlignment;
}

std::size_t caches(const KvPool::Geometry& geometry) {
  return static_cast<std::size_t>(geometry.slots) * static_cast<std::size_t>(geometry.layers);
}

}  // namespace

std::size_t KvPool::bytes(const Geometry& geometry) { return bytes_of_cache(geometry) * caches(geometry); }

KvPool::KvPool(const Geometry& geometry, Gpu* gpu) : geometry_(geometry) {
  const std::size_t stride = bytes_of_cache(geometry), count = caches(geometry);
  memory_ = Memory(gpu, stride * count);
  caches_.reserve(count);
  copies_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    caches_.push_back({.heads = geometry.heads,
                       .head_dim = geometry.head_dim,
                       .capacity = geometry.capacity,
                       .length = 0,
                       .storage = geometry.storage,
                       .data = memory_.data() + i * stride});
  }
}

void KvPool::truncate(int slot, std::int64_t length) {
  for (int layer = 0; layer < geometry_.layers; ++layer) {
    kernels::KvCache& cache = at(slot, layer);
    CHECK(length >= 0 && length <= cache.length, "a cache can not be truncated to more than it holds");
    cache.length = length;
  }
}

void KvPool::copy(ExecContext& context, std::span<const Copy> copies) {
  copies_.clear();
  for (const Copy& copy : copies) {
    for (int layer = 0; layer < geometry_.layers; ++layer) {
      const kernels::KvCache& from = at(copy.from, layer);
      copies_.push_back({.from = &from, .to = &at(copy.to, layer), .length = from.length});
    }
  }
  if (!copies_.empty()) kernels::kv_copy(context, copies_);
}

}  // namespace oasr::cache
