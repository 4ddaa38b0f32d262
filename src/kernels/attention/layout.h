// How a KvCache lies in memory. For the attention kernels only.
//
// Head after head: first its keys in panels of kKeys positions, [capacity / kKeys][head_dim][kKeys]
// (so that scores of neighbouring positions are one vector), then its values, [capacity][head_dim]. On a GPU values
// lie in panels like keys, so that neighbouring links of an output's chain are one load.
#pragma once

#include <cstdint>

#include "kernels/attention/op.h"

namespace oasr::kernels {

inline constexpr std::int64_t kKeys = 16;

// The lanes may read this many bytes past the end of the last values, into columns that they drop.
inline constexpr std::size_t kOverrun = 256;

// Columns of the weighted sums that a lane computes at once, at most.
inline constexpr std::int64_t kOutStride = 64;

// Floats of a row of scores: whole panels, and an odd number of cache lines (so that the rows of a
// tile do not compete for the same sets of a cache).
inline std::int64_t score_stride(std::int64_t length) {
  return ((length + kKeys - 1) / kKeys | 1) * kKeys;
}

struct KvLayout {
  explicit KvLayout(const KvCache& cache)
      : KvLayout(cache.head_dim, cache.capacity) {}
  KvLayout(int head_dim, std::int64_t capacity)
      : head_dim(head_dim), rows((capacity + kKeys - 1) / kKeys * kKeys) {}

  // Element offsets from KvCache::data.
  std::int64_t keys(std::int64_t head) const { return head * 2 * rows * head_dim; }
  std::int64_t values(std::int64_t head) const { return keys(head) + rows * head_dim; }
  std::int64_t key(std::int64_t head, std::int64_t position, std::int64_t d) const {
    return keys(head) + (position / kKeys) * head_dim * kKeys + d * kKeys + position % kKeys;
  }
  std::int64_t value(std::int64_t head, std::int64_t position, std::int64_t d) const {
    return values(head) + position * head_dim + d;
  }

  std::int64_t head_dim;
  std::int64_t rows;  // the capacity, rounded up to whole panels
};

}  // namespace oasr::kernels
