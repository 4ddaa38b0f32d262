// The rounds of a problem's kernels.
#pragma once

#include "api/kernel_bench/problem.h"
#include "base/result.h"

namespace oasr::kernel_bench {

// Runs every kernel once (on a GPU on each set), compares results, and then, `rounds` times, one after the other, each for about a
// millisecond. Fills in the times. Errors: internal (two results differ), cancelled.
Status run_rounds(Problem& problem, const Place& place, int rounds, const std::function<bool()>& cancelled);

}  // namespace oasr::kernel_bench
