// Layers that go back to more bits until the gate passes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/result.h"
#include "quantize/gate.h"

namespace oasr::quantize {

// Judges the model with these layers returned and all others as the recipe has them. An error, such as
// `cancelled`, ends the search.
using Evaluate = std::function<Result<GateReport>(std::span<const std::string> returned)>;

struct RankedLayer {
  std::string path;
  std::int64_t bytes = 0;  // that it costs when it returns
};

// `first` judges the model with no layer of `ranking` (the most sensitive first) returned. If it failed,
// the worst 1, 2, 4, 8, … of them return to first.returned_to, at last all, until the gate passes; then the
// shortest beginning of the ranking that passes is found by bisection. (Where a longer one fails though a
// shorter one passes, the result is one that passes and does not with one layer less.) At most
// `evaluations` are made. The report is that of the beginning that was found, or the last one that failed;
// its back_off holds every step as it was tried, its verdict says what came of it.
Result<GateReport> back_off(GateReport first, std::span<const RankedLayer> ranking, const Evaluate& evaluate,
                            int evaluations = 16);

}  // namespace oasr::quantize
