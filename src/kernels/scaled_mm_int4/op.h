// int8 activations times 4-bit weights with integer scales and zeros, exact in int32, then the epilogue of
// scaled_mm/epilogue.h: for equal int8 weights w = u · s - z, the bits of scaled_mm().
//
// Contract (every lane, any M, tile, split, thread count, instruction set: the same bits):
//   acc(m, n) = Σ a(m, k) · w(n, k) over the whole K, exact
// With float zeros, u is not shifted by them, and the epilogue has one step more, a single rounding:
//   value(m, n) = act(a_scale[m] · fma(-float(Σ_k a(m, k)), float_zero[n], w_scale[n] · float(acc)) +
//   bias[n])
// A row's result depends on that row only.
//
// How the lanes get there: acc = Σ_g (s_g · Σ_{k in g} a · u - z_g · Σ_{k in g} a), modulo 2³². The codes are
// the unsigned operand of the dot product as they are, and a group costs two multiplications for each sum.
#pragma once

#include "kernels/scaled_mm/implementation.h"
#include "kernels/scaled_mm/op.h"
#include "kernels/scaled_mm_int4/packed_int4_weight.h"

namespace oasr::kernels {

// The forms of scaled_mm/op.h, which says what each does.
using Int4MMArgs = ScaledMMArgsOf<PackedInt4Weight>;
using DynamicInt4MMArgs = DynamicScaledMMArgsOf<PackedInt4Weight>;
using StaticInt4MMArgs = StaticScaledMMArgsOf<PackedInt4Weight>;
void scaled_mm(ExecContext& context, const Int4MMArgs& args, const FloatOutput& out);
NotFinite scaled_mm_quant(ExecContext& context, const Int4MMArgs& args, const Int8Output& out);
NotFinite scaled_mm_dynamic(ExecContext& context, const DynamicInt4MMArgs& args, const FloatOutput& out);
NotFinite scaled_mm_dynamic(ExecContext& context, const DynamicInt4MMArgs& args, const Int8Output& out);
NotFinite scaled_mm_static(ExecContext& context, const StaticInt4MMArgs& args, const FloatOutput& out);
NotFinite scaled_mm_static(ExecContext& context, const StaticInt4MMArgs& args, const Int8Output& out);

// Reserves the scratch memory of every thread for 4-bit weights of up to k columns.
void int4_mm_reserve(ExecContext& context, std::int64_t k);

// One layout serves all lanes. AVX-VNNI and AMX have no lane of their own: they run AVX2's and AVX-512 VNNI's.
using Int4MMLane = ScaledMMLaneOf<PackedInt4Weight>;
std::span<const Int4MMLane> int4_mm_lanes();
const Int4MMLane& int4_mm_lane(Isa isa);
std::size_t int4_mm_scratch(std::int64_t rows, std::int64_t k);

// The definitions: plain loops, single thread. They allocate.
void scaled_mm_reference(const Int4MMArgs& args, const FloatOutput& out);
NotFinite scaled_mm_quant_reference(const Int4MMArgs& args, const Int8Output& out);
NotFinite scaled_mm_dynamic_reference(const DynamicInt4MMArgs& args, const FloatOutput& out);
NotFinite scaled_mm_dynamic_reference(const DynamicInt4MMArgs& args, const Int8Output& out);
NotFinite scaled_mm_static_reference(const StaticInt4MMArgs& args, const FloatOutput& out);
NotFinite scaled_mm_static_reference(const StaticInt4MMArgs& args, const Int8Output& out);

// What a layer binds to, for each backend of scaled_mm/backend.h.
using Int4MMImplementation = ScaledMMFunctions<PackedInt4Weight>;
std::span<const Int4MMImplementation> int4_mm_implementations();
const Int4MMImplementation& int4_mm_implementation(ScaledMMBackend backend);
// "scaled_mm_int4 avx512_vnni", "scaled_mm_int4 reference".
std::string implementation_name(const Int4MMImplementation& implementation, Isa isa);

}  // namespace oasr::kernels
