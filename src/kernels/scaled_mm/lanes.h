// The lanes' entry points: for the tables in lanes_*.cc only.
#pragma once

#include "kernels/scaled_mm/op.h"

namespace oasr::kernels {

// Compute panels [p0, p1) of all rows; one file and one set of compiler flags for each.
void scaled_mm_scalar(const ScaledMMArgs& args, const FloatOutput& out, std::int64_t p0,
                      std::int64_t p1, std::byte* scratch);
NotFinite scaled_mm_quant_scalar(const ScaledMMArgs& args, const Int8Output& out, std::int64_t p0,
                                 std::int64_t p1, std::byte* scratch);

void scaled_mm_avx2(const ScaledMMArgs& args, const FloatOutput& out, std::int64_t p0,
                    std::int64_t p1, std::byte* scratch);
NotFinite scaled_mm_quant_avx2(const ScaledMMArgs& args, const Int8Output& out, std::int64_t p0,
                               std::int64_t p1, std::byte* scratch);

void scaled_mm_avx_vnni(const ScaledMMArgs& args, const FloatOutput& out, std::int64_t p0,
                        std::int64_t p1, std::byte* scratch);
NotFinite scaled_mm_quant_avx_vnni(const ScaledMMArgs& args, const Int8Output& out, std::int64_t p0,
                                   std::int64_t p1, std::byte* scratch);

void scaled_mm_avx512_vnni(const ScaledMMArgs& args, const FloatOutput& out, std::int64_t p0,
                           std::int64_t p1, std::byte* scratch);
NotFinite scaled_mm_quant_avx512_vnni(const ScaledMMArgs& args, const Int8Output& out, std::int64_t p0,
                                      std::int64_t p1, std::byte* scratch);

void scaled_mm_amx(const ScaledMMArgs& args, const FloatOutput& out, std::int64_t p0,
                   std::int64_t p1, std::byte* scratch);
NotFinite scaled_mm_quant_amx(const ScaledMMArgs& args, const Int8Output& out, std::int64_t p0,
                              std::int64_t p1, std::byte* scratch);

}  // namespace oasr::kernels
