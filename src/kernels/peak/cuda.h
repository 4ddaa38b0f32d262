// The most that a GPU can do, measured: the roof that its products are compared with.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/enum_table.h"
#include "device/gpu.h"

namespace oasr::kernels {

// Operands. Products of the first four are summed in int32 or float32 on the matrix units, those of float32 by fma.
enum class GpuPeak : std::uint8_t { int8, fp8_e4m3, float16, bfloat16, float32 };
inline constexpr std::array kGpuPeakNames = {
    EnumName<GpuPeak>{GpuPeak::int8, "int8"},         EnumName<GpuPeak>{GpuPeak::fp8_e4m3, "fp8_e4m3"},
    EnumName<GpuPeak>{GpuPeak::float16, "float16"},   EnumName<GpuPeak>{GpuPeak::bfloat16, "bfloat16"},
    EnumName<GpuPeak>{GpuPeak::float32, "float32"},
};
inline std::span<const EnumName<GpuPeak>> gpu_peak_names() { return kGpuPeakNames; }

// The instructions that multiply: of one warp, with operands in registers, or of four, with operands in shared memory
// (sm_90a alone, where they are the only ones that reach what the card can).
enum class GpuPeakUnit : std::uint8_t { fma, mma_sync, wgmma };

// 10⁹ operations a second (a multiply-add is two) of the whole card: the best of some runs of a loop that moves no
// data. The operands are zeros: with others a card may have to lower its clock. 0 where the card, or this build, has
// no such instructions.
double gpu_peak_gops(Gpu& gpu, GpuPeak peak, GpuPeakUnit unit);
// The best of all units.
double gpu_peak_gops(Gpu& gpu, GpuPeak peak);

}  // namespace oasr::kernels
