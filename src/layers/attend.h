// Attention as a layer of a model.
#pragma once

#include <span>
#include <string_view>

#include "kernels/attention/op.h"
#include "layers/watched.h"

namespace oasr::layers {

// Of all sequences: two products with the positions that a query sees, three where positions have keys of their own.
inline LayerWork attention_work(const ExecContext& context, std::span<const kernels::AttentionArgs> sequences) {
  LayerWork work;
  for (const kernels::AttentionArgs& s : sequences) {
    const double width = s.kv->heads * s.kv->head_dim;
    const auto queries = static_cast<double>(s.queries), length = static_cast<double>(s.kv->length);
    const double pairs = s.causal ? queries * (length - (queries - 1) / 2) : queries * length;
    const double products = s.positions != nullptr ? 3 : 2;
    work.operations += 2 * products * pairs * width;
    work.bytes += products * length * width * static_cast<double>(dtype_size(s.kv->storage)) +
                  products * queries * width * sizeof(float);
    if (s.mixed) work.operands = arithmetic_name(context.arithmetic);
  }
  return work;
}

// kernels::attention(), watched. rows: of all sequences.
inline void attend(ExecContext& context, std::string_view path, std::int64_t rows,
                   std::span<const kernels::AttentionArgs> sequences) {
  const bool timed = context.observer != nullptr && context.observer->wants_times();
  watched(
      context, path, rows,
      [&] {
        kernels::attention(context, sequences);
        return kernels::NotFinite{};
      },
      timed ? attention_work(context, sequences) : LayerWork());
}

}  // namespace oasr::layers
