// The lanes' entry points: for the tables in lanes_*.cc only.
#pragma once

#include "kernels/activate/op.h"

namespace oasr::kernels {

// Compute rows [m0, m1); one file and one set of compiler flags each.
void activate_rows_scalar(const ActivateRowsArgs& args, std::int64_t m0, std::int64_t m1);
void activate_rows_avx2(const ActivateRowsArgs& args, std::int64_t m0, std::int64_t m1);
void activate_rows_avx512(const ActivateRowsArgs& args, std::int64_t m0, std::int64_t m1);
void glu_scalar(const GluArgs& args, std::int64_t m0, std::int64_t m1);
void glu_avx2(const GluArgs& args, std::int64_t m0, std::int64_t m1);
void glu_avx512(const GluArgs& args, std::int64_t m0, std::int64_t m1);

}  // namespace oasr::kernels
