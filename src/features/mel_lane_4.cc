#include "features/mel_lane_body.h"

namespace oasr {
namespace {

using Vector = float __attribute__((vector_size(16)));

void run(const MelTask& task, const float* const* frames, std::size_t count, float* work, float* logs,
         float* greatest) {
  run_group<Vector>(task, frames, count, work, logs, greatest);
}

}  // namespace

const MelLane kMelLane4{.name = "4 floats", .width = 4, .run = run};

}  // namespace oasr
