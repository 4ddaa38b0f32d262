#include "kernels/scaled_mm/packed_int8_weight.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"

namespace oasr::kernels {
namespace {

constexpr std::int64_t kPanel = PackedInt8Weight::kPanel;
constexpr std::int64_t kQuad = PackedInt8Weight::kQuad;

// Where element k of channel j of a panel is.
std::int64_t offset_in_panel(std::int64_t j, std::int64_t k) {
  return (k / kQuad * kPanel + j) * kQuad + k % kQuad;
}

}  // namespace

PackedInt8Weight PackedInt8Weight::pack(std::int64_t n, std::int64_t k,
                                        std::span<const std::int8_t> weight,
                                        std::span<const float> scale) {
  CHECK(n >= 1 && k >= 1 && k <= kGreatestK, "the size of an int8 weight");
  CHECK(weight.size() == static_cast<std::size_t>(n * k) && scale.size() == static_cast<std::size_t>(n),
        "a weight and its scales have the given size");
  PackedInt8Weight packed;
  packed.n_ = n;
  packed.k_ = k;
  const auto channels = static_cast<std::size_t>(packed.panels() * kPanel);
  packed.data_ = Memory(nullptr, channels * static_cast<std::size_t>(packed.padded_k()));
  packed.scale_ = Memory(nullptr, channels * sizeof(float));
  packed.offset_ = Memory(nullptr, channels * sizeof(std::int32_t));
  for (Memory* buffer : {&packed.data_, &packed.scale_, &packed.offset_}) {
    std::memset(buffer->data(), 0, buffer->size());
  }
  std::memcpy(packed.scale_.data(), scale.data(), scale.size_bytes());
  auto* offset = reinterpret_cast<std::int32_t*>(packed.offset_.data());
  for (std::int64_t row = 0; row < n; ++row) {
    const std::int8_t* from = weight.data() + row * k;
    auto* to = reinterpret_cast<std::int8_t*>(packed.data_.data()) + row / kPanel * packed.padded_k() * kPanel;
    std::int32_t sum = 0;
    for (std::int64_t i = 0; i < k; ++i) {
      to[offset_in_panel(row % kPanel, i)] = from[i];
      sum += from[i];
    }
    offset[row] = -128 * sum;
  }
  return packed;
}

void PackedInt8Weight::place(Gpu& gpu) {
  CHECK(!placed_, "a weight is placed once");
  const auto stride = static_cast<std::size_t>(padded_k());
  std::vector<std::int8_t> rows(static_cast<std::size_t>(n_) * stride);
  for (std::int64_t n = 0; n < n_; ++n) {
    unpack_row(n, std::span(rows).subspan(static_cast<std::size_t>(n) * stride, static_cast<std::size_t>(k_)));
  }
  Memory data(&gpu, rows.size()), scale(&gpu, scale_.size());
  gpu.upload(data.data(), rows.data(), rows.size());
  gpu.upload(scale.data(), scale_.data(), scale_.size());
  data_ = std::move(data);
  scale_ = std::move(scale);
  offset_ = {};
  placed_ = true;
}

void PackedInt8Weight::unpack_row(std::int64_t n, std::span<std::int8_t> out) const {
  CHECK(!placed_, "the rows of a weight on a GPU are read by its kernels");
  CHECK(n >= 0 && n < n_ && out.size() == static_cast<std::size_t>(k_), "a row outside the weight");
  const std::int8_t* from = panel(n / kPanel);
  for (std::int64_t i = 0; i < k_; ++i) out[static_cast<std::size_t>(i)] = from[offset_in_panel(n % kPanel, i)];
}

}  // namespace oasr::kernels
