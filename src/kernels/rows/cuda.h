// The functions of op.h on a GPU, for rows.cc only: matrices are device memory; tokens, numbers of rows and
// what transpose_in() reads are host memory.
#pragma once

#include "device/gpu.h"
#include "kernels/rows/op.h"

namespace oasr::kernels {

void embed_rows_cuda(Gpu& gpu, const EmbedRowsArgs& args);
void gather_rows_cuda(Gpu& gpu, ConstMatrix x, std::span<const std::int32_t> rows, Matrix y);
void shift_scale_rows_cuda(Gpu& gpu, const ShiftScaleRowsArgs& args);
void transpose_in_cuda(Gpu& gpu, std::span<const float> x, Matrix y);
void to_host_cuda(Gpu& gpu, ConstMatrix x, std::span<float> out);
void first_not_finite_cuda(Gpu& gpu, ConstMatrix x);

}  // namespace oasr::kernels
