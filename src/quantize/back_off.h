// Layers that go back to full precision until the gate passes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/result.h"
#include "quantize/gate.h"

namespace oasr::quantize {

// Judges the model with these layers at full precision and all others quantized. An error, such as
// `cancelled`, ends the search.
using Evaluate = std::function<Result<GateReport>(std::span<const std::string> full_precision)>;

struct RankedLayer {
  std::string path;
  std::int64_t bytes = 0;  // that full precision costs more
};

// `first` judges the model with all layers of `ranking` (the most sensitive first) quantized. If it failed,
// the worst 1, 2, 4, 8, … of them return to full precision, at last all, until the gate passes; then the
// shortest beginning of the ranking that passes is found by bisection. (Where a longer one fails though a
// shorter one passes, the result is one that passes and does not with one layer less.) At most
// `evaluations` are made. The report is that of the beginning that was found, or the last one that failed;
// its back_off holds every step as it was tried, its verdict says what came of it.
Result<GateReport> back_off(GateReport first, std::span<const RankedLayer> ranking, const Evaluate& evaluate,
                            int evaluations = 16);

}  // namespace oasr::quantize
