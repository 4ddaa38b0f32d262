// The lanes' entry points: for the tables in lanes_*.cc only.
#pragma once

#include "kernels/scaled_mm_int4/op.h"

namespace oasr::kernels {

// Compute panels [p0, p1) of all rows; one file and one set of compiler flags for each.
void int4_mm_scalar(const Int4MMArgs& args, const FloatOutput& out, std::int64_t p0, std::int64_t p1,
                    std::byte* scratch);
NotFinite int4_mm_quant_scalar(const Int4MMArgs& args, const Int8Output& out, std::int64_t p0,
                               std::int64_t p1, std::byte* scratch);

void int4_mm_avx2(const Int4MMArgs& args, const FloatOutput& out, std::int64_t p0, std::int64_t p1,
                  std::byte* scratch);
NotFinite int4_mm_quant_avx2(const Int4MMArgs& args, const Int8Output& out, std::int64_t p0, std::int64_t p1,
                             std::byte* scratch);

void int4_mm_avx512_vnni(const Int4MMArgs& args, const FloatOutput& out, std::int64_t p0, std::int64_t p1,
                         std::byte* scratch);
NotFinite int4_mm_quant_avx512_vnni(const Int4MMArgs& args, const Int8Output& out, std::int64_t p0,
                                    std::int64_t p1, std::byte* scratch);

}  // namespace oasr::kernels
