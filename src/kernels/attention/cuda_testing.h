// For the tests of attention on a GPU.
#pragma once

#include <cstring>
#include <vector>

#include "device/gpu.h"
#include "kernels/attention/layout.h"

namespace oasr::kernels {

// NaN in all positions of a cache on a GPU that hold nothing, so that a result which depends on them is seen.
inline void poison_free_positions(Gpu& gpu, const KvCache& cache) {
  std::vector<std::byte> bytes(kv_cache_bytes(cache.heads, cache.head_dim, cache.capacity, cache.storage));
  gpu.download(bytes.data(), cache.data, bytes.size());
  const KvLayout layout(cache);
  const std::size_t element = dtype_size(cache.storage);
  for (std::int64_t head = 0; head < cache.heads; ++head) {
    const std::int64_t values = layout.values(head) - layout.keys(head);  // lie in panels like keys
    for (std::int64_t j = cache.length; j < layout.rows; ++j) {
      for (std::int64_t d = 0; d < cache.head_dim; ++d) {
        const std::int64_t key = layout.key(head, j, d);
        for (const std::int64_t at : {key, key + values}) {
          std::memset(bytes.data() + static_cast<std::size_t>(at) * element, 0xFF, element);
        }
      }
    }
  }
  gpu.upload(cache.data, bytes.data(), bytes.size());
}

}  // namespace oasr::kernels
