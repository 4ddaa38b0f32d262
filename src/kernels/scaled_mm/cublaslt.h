// The int8 products of OASR_SCALED_MM_BACKEND=cublaslt, for scaled_mm/cuda.cu and implementation.cc only: the
// library multiplies into int32 sums in memory, and a kernel does with them what our own kernels do at the
// end of theirs, so the bits are the same. For comparison; a product takes the way of its sums through memory
// longer.
#pragma once

#include "base/result.h"
#include "device/gpu.h"
#include "kernels/cuda/cublaslt.h"
#include "kernels/scaled_mm/op.h"

namespace oasr::kernels {

// Sums of a block of rows, at least of kCublasLtRows, fit into the memory that is reserved for them.
inline constexpr std::size_t kCublasLtSums = 64 << 20;
// Fewer rows are filled up with zeros: the library has no kernel for a few of them.
inline constexpr std::int64_t kCublasLtRows = 32;

// Whether a weight [n, k] can be multiplied.
constexpr bool cublaslt_takes(std::int64_t n, std::int64_t k) {
  return CublasLt::takes(CublasLt::Type::int8, n, k) &&
         n <= static_cast<std::int64_t>(kCublasLtSums / sizeof(std::int32_t)) / kCublasLtRows;
}

// A queue then keeps the library's handle and 112 MiB of memory for it (Gpu::attached()). Uses the
// library's first proposal for each shape: the lengths of recordings differ, and measuring takes long.
Status open_cublaslt(Gpu& gpu);
// As scaled_mm_cuda(); cublaslt_takes() of the weight. Throws GpuError where the library fails.
void scaled_mm_cublaslt(Gpu& gpu, const ScaledMMArgs& args, const FloatOutput& out);
void scaled_mm_cublaslt(Gpu& gpu, const ScaledMMArgs& args, const Int8Output& out);

}  // namespace oasr::kernels
