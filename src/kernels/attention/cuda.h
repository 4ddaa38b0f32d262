// Attention and its caches on a GPU, for attention.cc and kv_cache.cc only. Matrices and the data of caches
// are device memory, in the layout of layout.h; the structs are host memory.
#pragma once

#include <cstddef>
#include <span>

#include "device/arithmetic.h"
#include "device/gpu.h"
#include "kernels/attention/op.h"

namespace oasr::kernels {

void attention_cuda(Gpu& gpu, std::span<const AttentionArgs> sequences, Arithmetic arithmetic);
// The same as on a card whose blocks may have so many bytes of shared memory, for tests: no more than they have.
void attention_cuda(Gpu& gpu, std::span<const AttentionArgs> sequences, Arithmetic arithmetic, std::size_t shared);
// The lengths of the caches stay: kv_cache.cc sets them.
void kv_append_cuda(Gpu& gpu, std::span<const AppendArgs> appends);
void kv_copy_cuda(Gpu& gpu, std::span<const CopyArgs> copies);
void kv_drop_front_cuda(Gpu& gpu, std::span<const DropArgs> drops);

}  // namespace oasr::kernels
