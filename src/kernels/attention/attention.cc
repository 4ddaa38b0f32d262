#include "kernels/attention/op.h"

namespace oasr::kernels {

void attention(ExecContext& context, std::span<const AttentionArgs> sequences) {
  context.pool->parallel_for(static_cast<std::int64_t>(sequences.size()), [&](std::int64_t i, int) {
    attention_reference(sequences[static_cast<std::size_t>(i)]);
  });
}

}  // namespace oasr::kernels
