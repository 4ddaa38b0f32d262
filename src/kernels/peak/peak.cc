#include <algorithm>
#include <array>
#include <chrono>

#include "kernels/lane_choice.h"
#include "kernels/peak/op.h"

namespace oasr::kernels {
namespace {

constexpr std::array kNames = {
    EnumName<PeakKind>{PeakKind::int8, "int8"},
    EnumName<PeakKind>{PeakKind::float32, "float32"},
};

}  // namespace

std::span<const EnumName<PeakKind>> peak_kind_names() { return kNames; }

const PeakLane& peak_lane(PeakKind kind, Isa isa) { return choose_lane(peak_lanes(kind), isa); }

double peak_gops(PeakKind kind, Isa isa, double seconds) {
  // The wall clock: the accounting of CPU time can be too short by a tick, and a roof must not be.
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;
  const PeakLane& lane = peak_lane(kind, isa);
  lane.run(lane.rounds);  // wide vectors need a moment to reach their rate
  double best = 0;
  const auto start = Clock::now();
  auto now = start;
  do {
    const auto begin = now;
    const double operations = lane.run(lane.rounds);
    now = Clock::now();
    best = std::max(best, operations / Seconds(now - begin).count());
  } while (Seconds(now - start).count() < seconds);
  return best * 1e-9;
}

}  // namespace oasr::kernels
