// How many rows of a feed-forward block are worked on at a time.
#pragma once

#include <algorithm>
#include <cstdint>

#include "device/gpu.h"

namespace oasr::layers {

// On a processor so few that their hidden activations stay in the cache between the two products instead of going
// to memory; on a GPU (not null) all.
inline std::int64_t feed_forward_rows(std::int64_t rows, const Gpu* gpu) {
  return gpu != nullptr ? rows : std::min<std::int64_t>(rows, 480);
}

}  // namespace oasr::layers
