// The rule by which every op chooses its lane.
#pragma once

#include <span>
#include <string_view>

#include "base/check.h"
#include "device/thread_pool.h"

namespace oasr::kernels {

// The row with the best isa that `isa` covers. With Isa::reference, which has no lanes, the scalar one: of what has
// no definition beside it (copies into key/value caches, weights that are quantized as they are loaded).
template <class Lane>
const Lane& choose_lane(std::span<const Lane> lanes, Isa isa) {
  if (isa == Isa::reference) isa = Isa::scalar;
  const Lane* best = nullptr;
  for (const Lane& lane : lanes) {
    if (isa_covers(isa, lane.isa) && (best == nullptr || best->isa < lane.isa)) best = &lane;
  }
  CHECK(best != nullptr, "every op has a scalar lane");
  return *best;
}

// Whether an op runs its definition, which is in its reference.cc: on the calling thread, and it allocates.
inline bool runs_reference(const ExecContext& context) { return context.isa == Isa::reference; }

// The lane that an op runs with `isa`, for reports.
template <class Lane>
std::string_view lane_name(const Lane& lane, Isa isa) {
  return isa == Isa::reference ? isa_name(isa) : lane.name;
}

}  // namespace oasr::kernels
