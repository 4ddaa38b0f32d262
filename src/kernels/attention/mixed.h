// Attention in mixed precision on a GPU, for cuda.cu only.
#pragma once

#include "device/arithmetic.h"
#include "kernels/attention/cuda.h"

namespace oasr::kernels {

// Those of the sequences that say `mixed`.
void attention_mixed_cuda(Gpu& gpu, std::span<const AttentionArgs> sequences, Arithmetic arithmetic);

}  // namespace oasr::kernels
