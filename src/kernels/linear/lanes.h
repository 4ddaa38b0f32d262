// The lanes' entry points: for the tables in lanes_*.cc only.
#pragma once

#include "kernels/linear/op.h"

namespace oasr::kernels {

// Compute rows [m0, m1) × panels [p0, p1); one file and one set of compiler flags each.
void linear_scalar(const LinearArgs& args, std::int64_t m0, std::int64_t m1, std::int64_t p0,
                   std::int64_t p1);
void linear_avx2(const LinearArgs& args, std::int64_t m0, std::int64_t m1, std::int64_t p0,
                 std::int64_t p1);
void linear_avx512(const LinearArgs& args, std::int64_t m0, std::int64_t m1, std::int64_t p0,
                   std::int64_t p1);

}  // namespace oasr::kernels
