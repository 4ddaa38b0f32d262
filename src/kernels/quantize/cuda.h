// The ops of quantize/ on a GPU, for quantize.cc only: all of args is device memory. What is not finite goes
// to gpu.not_finite_row().
#pragma once

#include "device/gpu.h"
#include "kernels/quantize/norm.h"
#include "kernels/quantize/op.h"

namespace oasr::kernels {

void quantize_per_token_cuda(Gpu& gpu, const QuantizePerTokenArgs& args);
void quantize_static_cuda(Gpu& gpu, const QuantizeStaticArgs& args);
void layer_norm_quant_cuda(Gpu& gpu, const LayerNormQuantArgs& args);

}  // namespace oasr::kernels
