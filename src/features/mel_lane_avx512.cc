#include "features/mel_lane_body.h"

namespace oasr {
namespace {

using Vector = float __attribute__((vector_size(64)));

void run(const MelTask& task, const float* const* frames, std::size_t count, float* work, float* logs,
         float* greatest) {
  run_group<Vector>(task, frames, count, work, logs, greatest);
}

}  // namespace

const MelLane kMelLaneAvx512{.name = "avx512", .width = 16, .run = run};

}  // namespace oasr
