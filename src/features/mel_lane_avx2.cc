#include "features/mel_lane_body.h"

namespace oasr {
namespace {

using Vector = float __attribute__((vector_size(32)));

void run(const MelTask& task, const float* const* frames, std::size_t count, float* work, float* logs,
         float* greatest) {
  run_group<Vector>(task, frames, count, work, logs, greatest);
}

}  // namespace

const MelLane kMelLaneAvx2{.name = "avx2", .width = 8, .run = run};

}  // namespace oasr
