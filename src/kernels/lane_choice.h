// The rule by which every op chooses its lane.
#pragma once

#include <span>

#include "base/check.h"
#include "device/cpu.h"

namespace oasr::kernels {

// The row with the best isa that `isa` covers.
template <class Lane>
const Lane& choose_lane(std::span<const Lane> lanes, Isa isa) {
  const Lane* best = nullptr;
  for (const Lane& lane : lanes) {
    if (isa_covers(isa, lane.isa) && (best == nullptr || best->isa < lane.isa)) best = &lane;
  }
  CHECK(best != nullptr, "every op has a scalar lane");
  return *best;
}

}  // namespace oasr::kernels
