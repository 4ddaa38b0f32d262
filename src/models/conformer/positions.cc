#include "models/conformer/positions.h"

#include <algorithm>
#include <cmath>

#include "kernels/attention/layout.h"

namespace oasr::models::conformer {

using kernels::kKeys;
using kernels::KvCache;

void sinusoid(std::int64_t position, std::span<float> out) {
  const auto d = static_cast<float>(out.size());
  const auto step = static_cast<float>(-(std::log(10000.0) / d));
  for (std::size_t i = 0; i < out.size(); i += 2) {
    const auto frequency = static_cast<float>(std::exp(static_cast<double>(static_cast<float>(i) * step)));
    const float angle = static_cast<float>(position) * frequency;
    out[i] = static_cast<float>(std::sin(static_cast<double>(angle)));
    if (i + 1 < out.size()) out[i + 1] = static_cast<float>(std::cos(static_cast<double>(angle)));
  }
}

PositionTable::PositionTable(std::vector<const layers::Linear*> linear_pos, int heads, int head_dim)
    : linear_pos_(std::move(linear_pos)),
      heads_(heads),
      head_dim_(head_dim),
      memory_(linear_pos_.size()),
      keys_(linear_pos_.size()) {}

void PositionTable::reserve(ExecContext& context, std::int64_t count) {
  if (count <= length_) return;
  const std::int64_t d = std::int64_t{heads_} * head_dim_, added = count - length_;
  if (keys_.empty() || count > keys_.front().capacity) {
    const std::int64_t capacity = (std::max(count, 2 * length_) + kKeys - 1) / kKeys * kKeys;
    for (std::size_t block = 0; block < keys_.size(); ++block) {
      Memory memory(context.gpu, kernels::kv_cache_bytes(heads_, head_dim_, capacity, DType::f32));
      KvCache larger{.heads = heads_, .head_dim = head_dim_, .capacity = capacity, .length = 0,
                     .storage = DType::f32, .data = memory.data(), .keys_only = true};
      const kernels::CopyArgs copy{.from = &keys_[block], .to = &larger, .length = length_};
      if (length_ > 0) kernels::kv_copy(context, {&copy, 1});
      keys_[block] = larger;
      memory_[block] = std::move(memory);
    }
  }
  std::vector<float> sinusoids(static_cast<std::size_t>(added * d));
  for (std::int64_t i = 0; i < added; ++i) {
    sinusoid(length_ + i, std::span(sinusoids).subspan(static_cast<std::size_t>(i * d), static_cast<std::size_t>(d)));
  }
  layers::Buffer buffer(2 * added * d, context.gpu);
  const Matrix both = buffer.matrix(2 * added, d);
  const Matrix positions = both.row_range(0, added), projected = both.row_range(added, added);
  to_device(context.gpu, positions.data, sinusoids);
  for (std::size_t block = 0; block < keys_.size(); ++block) {
    linear_pos_[block]->forward(context, positions, projected);
    kernels::kv_append(context, keys_[block], projected.data, projected.stride, nullptr, 0, added);
  }
  length_ = count;
}

KvCache PositionTable::view(ExecContext& context, int block, std::int64_t first, std::int64_t count,
                            Memory& scratch) const {
  CHECK(first >= 0 && first + count <= length_, "positions that are reserved");
  KvCache view = keys_[static_cast<std::size_t>(block)];
  const std::int64_t panel = first / kKeys;
  view.data += static_cast<std::size_t>(panel * kKeys * head_dim_) * sizeof(float);
  view.length = first % kKeys + count;
  if (first % kKeys == 0) return view;
  const std::size_t bytes = kernels::kv_cache_bytes(heads_, head_dim_, view.length, DType::f32);
  if (scratch.size() < bytes) scratch = Memory(context.gpu, bytes);
  KvCache moved{.heads = heads_, .head_dim = head_dim_, .capacity = view.length, .length = 0,
                .storage = DType::f32, .data = scratch.data(), .keys_only = true};
  const kernels::CopyArgs copy{.from = &view, .to = &moved, .length = view.length};
  const kernels::DropArgs drop{.kv = &moved, .count = first % kKeys};
  kernels::kv_copy(context, {&copy, 1});
  kernels::kv_drop_front(context, {&drop, 1});
  return moved;
}

std::size_t PositionTable::bytes() const {
  std::size_t bytes = 0;
  for (const Memory& memory : memory_) bytes += memory.size() / 2;  // the halves of values stay untouched
  return bytes;
}

}  // namespace oasr::models::conformer
