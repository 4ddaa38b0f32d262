// The int8 products on a GPU, for scaled_mm.cc and scaled_conv.cc only: all of args is device memory, the
// weight is placed. What is not finite goes to gpu.not_finite_row().
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "device/gpu.h"
#include "kernels/scaled_mm/backend.h"
#include "kernels/scaled_mm/op.h"

namespace oasr::kernels {

// With native or a backend of GPUs; of cublaslt see scaled_mm/cublaslt.h.
void scaled_mm_cuda(Gpu& gpu, const ScaledMMArgs& args, const FloatOutput& out,
                    ScaledMMBackend backend = ScaledMMBackend::native);
void scaled_mm_cuda(Gpu& gpu, const ScaledMMArgs& args, const Int8Output& out,
                    ScaledMMBackend backend = ScaledMMBackend::native);
void scaled_mm_cuda(Gpu& gpu, const DynamicScaledMMArgs& args, const FloatOutput& out,
                    ScaledMMBackend backend = ScaledMMBackend::native);
void scaled_mm_cuda(Gpu& gpu, const DynamicScaledMMArgs& args, const Int8Output& out,
                    ScaledMMBackend backend = ScaledMMBackend::native);
void scaled_mm_cuda(Gpu& gpu, const StaticScaledMMArgs& args, const FloatOutput& out,
                    ScaledMMBackend backend = ScaledMMBackend::native);
void scaled_mm_cuda(Gpu& gpu, const StaticScaledMMArgs& args, const Int8Output& out,
                    ScaledMMBackend backend = ScaledMMBackend::native);

// Whether tiles of wgmma run on it: an instruction of compute capability 9.0, if this build has kernels for it.
bool scaled_mm_has_wgmma(const GpuInfo& gpu);

// Tiles of an output that a block of threads computes. Which one is used changes no bit.
enum class ScaledMMTile : std::uint8_t {
  m16n16, m16n32, m32n32, m64n32, m64n64, m128n128, m128n256, wide_m128n128, wide_m128n256
};
inline constexpr std::array kScaledMMTiles = {
    ScaledMMTile::m16n16,        ScaledMMTile::m16n32,       ScaledMMTile::m32n32,
    ScaledMMTile::m64n32,        ScaledMMTile::m64n64,       ScaledMMTile::m128n128,
    ScaledMMTile::m128n256,      ScaledMMTile::wide_m128n128, ScaledMMTile::wide_m128n256};
constexpr bool is_wide(ScaledMMTile tile) {
  return tile == ScaledMMTile::wide_m128n128 || tile == ScaledMMTile::wide_m128n256;
}
ScaledMMTile scaled_mm_tile(std::int64_t m, std::int64_t n, std::int64_t k, const GpuInfo& gpu,
                            ScaledMMBackend backend = ScaledMMBackend::native);
// Whether the GPU runs it: wide ones need wgmma, m64n32 and m128n256 more than 99 KiB of shared memory.
bool scaled_mm_runs(ScaledMMTile tile, const GpuInfo& gpu);
// With a tile of the caller's choice: tests, benchmarks. One that the GPU can not run becomes one that it can.
void scaled_mm_cuda(Gpu& gpu, const ScaledMMArgs& args, const FloatOutput& out, ScaledMMTile tile);
void scaled_mm_cuda(Gpu& gpu, const ScaledMMArgs& args, const Int8Output& out, ScaledMMTile tile);

}  // namespace oasr::kernels
