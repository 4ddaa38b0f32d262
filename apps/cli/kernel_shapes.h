// Shapes of operations, as `oasr bench kernels --shapes` takes them.
#pragma once

#include <string_view>
#include <vector>

#include "oasr/kernel_bench.h"
#include "oasr/result.h"

namespace oasr::cli {

// "1500x2048x512,64x4096x4096": MxNxK of products, or MxK of rows, with commas between. Decimal digits alone, extents of
// at least 1. Errors: invalid_argument, with the place (from 1) of the character that does not fit.
Result<std::vector<KernelShape>> parse_kernel_shapes(std::string_view text);

}  // namespace oasr::cli
