// The int8 products as a set of functions for each backend, so that a layer binds once to a row of the
// table and calls what is stored there.
//
// All rows keep the contracts of op.h and give the same bits. native runs where the context says: the lane of
// context.isa on context.pool, where it allocates nothing after reserve(), or the kernels of context.gpu. reference
// runs the definitions: slow, on the calling thread, and it allocates in every call. Rows of GPUs need a context
// with one.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "device/gpu.h"
#include "kernels/scaled_conv/op.h"
#include "kernels/scaled_mm/backend.h"
#include "kernels/scaled_mm/op.h"

namespace oasr::kernels {

template <class Weight>
struct ScaledMMFunctions {
  ScaledMMBackend backend;
  // Rows that are int8 already.
  void (*mm)(ExecContext& context, const ScaledMMArgsOf<Weight>& args, const FloatOutput& out);
  NotFinite (*mm_quant)(ExecContext& context, const ScaledMMArgsOf<Weight>& args, const Int8Output& out);
  // Rows of floats, quantized per token.
  NotFinite (*dynamic)(ExecContext& context, const DynamicScaledMMArgsOf<Weight>& args, const FloatOutput& out);
  NotFinite (*dynamic_quant)(ExecContext& context, const DynamicScaledMMArgsOf<Weight>& args,
                             const Int8Output& out);
  // Rows of floats, quantized with one calibrated scale.
  NotFinite (*fixed)(ExecContext& context, const StaticScaledMMArgsOf<Weight>& args, const FloatOutput& out);
  NotFinite (*fixed_quant)(ExecContext& context, const StaticScaledMMArgsOf<Weight>& args, const Int8Output& out);
  void (*reserve)(ExecContext& context, std::int64_t k);
};
struct ScaledMMImplementation : ScaledMMFunctions<PackedInt8Weight> {
  // The static form over receptive fields.
  NotFinite (*conv)(ExecContext& context, const StaticScaledConvArgs& args, const FloatOutput& out);
};
std::span<const ScaledMMImplementation> scaled_mm_implementations();
const ScaledMMImplementation& scaled_mm_implementation(ScaledMMBackend backend);

// Whether a row can multiply by a weight [n, k]; else an error without a place, which the caller knows.
Status check_product(const ScaledMMImplementation& implementation, std::int64_t n, std::int64_t k);
// What a row needs of a GPU before its first product: of cublaslt the library and its memory, else nothing. Errors
// as CublasLt::open().
Status prepare(const ScaledMMImplementation& implementation, Gpu& gpu);

// What a row runs where `isa` is chosen, for reports: "scaled_mm avx512_vnni", "scaled_mm reference".
std::string implementation_name(const ScaledMMImplementation& implementation, Isa isa);
// The same on a GPU: "scaled_mm wgmma+mma_sync" (many rows and few), "scaled_mm mma_sync", "scaled_mm cublaslt".
std::string implementation_name(const ScaledMMImplementation& implementation, const GpuInfo& gpu);

}  // namespace oasr::kernels
