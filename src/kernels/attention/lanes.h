// The lanes' entry points: for the tables in lanes_*.cc only.
#pragma once

#include "kernels/attention/op.h"

namespace oasr::kernels {

// Compute queries [q0, q1) of one head; one file and one set of compiler flags each.
void attention_scalar(const AttentionArgs& args, std::int64_t head, std::int64_t q0, std::int64_t q1,
                      float* scratch);
void attention_avx2(const AttentionArgs& args, std::int64_t head, std::int64_t q0, std::int64_t q1,
                    float* scratch);
void attention_avx512(const AttentionArgs& args, std::int64_t head, std::int64_t q0, std::int64_t q1,
                      float* scratch);

// Write the keys and values of one head.
void kv_append_scalar(const AppendArgs& args, std::int64_t head);
void kv_append_avx2(const AppendArgs& args, std::int64_t head);
void kv_append_avx512(const AppendArgs& args, std::int64_t head);

}  // namespace oasr::kernels
