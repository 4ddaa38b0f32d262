#include "kernels/scaled_mm_int4/packed_int4_weight.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace oasr::kernels {
namespace {

constexpr std::int64_t kPanel = PackedInt4Weight::kPanel, kLine = PackedInt4Weight::kLine;
constexpr std::int64_t kLineK = PackedInt4Weight::kLineK;

// Calls f(k, byte, shift) for the codes of group g of channel j: where in its panel each is.
template <class F>
void for_group(const PackedInt4Weight& weight, std::int64_t j, std::int64_t g, F f) {
  const std::int64_t lines = weight.group_lines();
  std::int64_t k = g * lines * kLineK, byte = g * (lines + 1) * kLine + j * 4;
  const std::int64_t end = std::min(weight.k(), k + lines * kLineK);
  for (; k < end; k += kLineK, byte += kLine) {
    const std::int64_t count = std::min(kLineK, end - k);
    for (std::int64_t i = 0; i < count; ++i) f(k + i, byte + i % 4, i < 4 ? 0 : 4);
  }
}

AlignedBuffer padded_floats(std::span<const float> values, std::int64_t panels) {
  AlignedBuffer buffer(static_cast<std::size_t>(panels * kPanel) * sizeof(float));
  std::memset(buffer.data(), 0, buffer.size());
  std::memcpy(buffer.data(), values.data(), values.size_bytes());
  return buffer;
}

}  // namespace

PackedInt4Weight::PackedInt4Weight(std::int64_t n, std::int64_t k, std::int64_t group_lines,
                                   std::span<const float> scale)
    : n_(n), k_(k), group_lines_(group_lines) {
  CHECK(n >= 1 && k >= 1 && k <= kGreatestK, "the size of a 4-bit weight");
  CHECK(scale.size() == static_cast<std::size_t>(n), "a scale for each channel");
  data_ = AlignedBuffer(static_cast<std::size_t>(panels() * panel_bytes()));
  std::memset(data_.data(), 0, data_.size());
  scale_ = padded_floats(scale, panels());
}

PackedInt4Weight PackedInt4Weight::pack_groups(std::int64_t n, std::int64_t k,
                                               std::span<const std::uint8_t> codes,
                                               std::span<const float> scale,
                                               std::span<const std::uint8_t> group_scale,
                                               std::span<const std::int16_t> group_zero) {
  CHECK(k % kGroup == 0, "whole groups");
  PackedInt4Weight packed(n, k, kGroup / kLineK, scale);
  const std::int64_t groups = packed.groups();
  CHECK(codes.size() == static_cast<std::size_t>(n * k), "codes of the given size");
  CHECK(group_scale.size() == static_cast<std::size_t>(n * groups) && group_zero.size() == group_scale.size(),
        "a scale and a zero for each group");
  for (std::int64_t row = 0; row < n; ++row) {
    packed.pack_row(row, codes.data() + row * k, [&](std::int64_t g) {
      const auto i = static_cast<std::size_t>(row * groups + g);
      return Level{.scale = group_scale[i], .minus_zero = static_cast<std::int16_t>(-group_zero[i])};
    });
  }
  return packed;
}

PackedInt4Weight PackedInt4Weight::pack_channels(std::int64_t n, std::int64_t k,
                                                 std::span<const std::uint8_t> codes,
                                                 std::span<const float> scale,
                                                 std::span<const std::uint8_t> zero,
                                                 std::span<const float> float_zero) {
  PackedInt4Weight packed(n, k, (k + kDepth - 1) / kDepth * kDepth / kLineK, scale);
  const auto channels = static_cast<std::size_t>(n);
  CHECK(codes.size() == channels * static_cast<std::size_t>(k), "codes of the given size");
  CHECK((zero.empty() || zero.size() == channels) && (float_zero.empty() || float_zero.size() == channels),
        "a zero for each channel, or none");
  for (std::int64_t row = 0; row < n; ++row) {
    packed.pack_row(row, codes.data() + row * k, [&](std::int64_t) {
      const int z = zero.empty() ? 0 : zero[static_cast<std::size_t>(row)];
      return Level{.scale = 1, .minus_zero = static_cast<std::int16_t>(-z)};
    });
  }
  if (!float_zero.empty()) packed.float_zero_ = padded_floats(float_zero, packed.panels());
  return packed;
}

void PackedInt4Weight::pack_row(std::int64_t n, const std::uint8_t* codes,
                                const std::function<Level(std::int64_t g)>& level) {
  auto* to = reinterpret_cast<std::uint8_t*>(data_.data()) + n / kPanel * panel_bytes();
  for (std::int64_t g = 0; g < groups(); ++g) {
    const Level at = level(g);
    CHECK(at.scale >= 1 && at.scale <= 127, "an integer scale of 1 … 127");
    for_group(*this, n % kPanel, g, [&](std::int64_t k, std::int64_t byte, int shift) {
      const int value = codes[k] * at.scale + at.minus_zero;
      CHECK(codes[k] <= 15 && value >= -128 && value <= 127,
            "a code of four bits that stands for an int8 value");
      to[byte] = static_cast<std::uint8_t>(to[byte] | codes[k] << shift);
    });
    std::memcpy(to + level_byte(n % kPanel, g), &at, sizeof at);
  }
}

const PackedInt4Weight::Level& PackedInt4Weight::level(std::int64_t n, std::int64_t g) const {
  CHECK(n >= 0 && n < n_ && g >= 0 && g < groups(), "a group outside the weight");
  return *reinterpret_cast<const Level*>(panel(n / kPanel) + level_byte(n % kPanel, g));
}

void PackedInt4Weight::unpack_codes(std::int64_t n, std::span<std::uint8_t> out) const {
  CHECK(n >= 0 && n < n_ && out.size() == static_cast<std::size_t>(k_), "a row outside the weight");
  const std::uint8_t* from = panel(n / kPanel);
  for (std::int64_t g = 0; g < groups(); ++g) {
    for_group(*this, n % kPanel, g, [&](std::int64_t k, std::int64_t byte, int shift) {
      out[static_cast<std::size_t>(k)] = static_cast<std::uint8_t>(from[byte] >> shift & 15);
    });
  }
}

void PackedInt4Weight::unpack_row(std::int64_t n, std::span<std::int8_t> out) const {
  auto* codes = reinterpret_cast<std::uint8_t*>(out.data());
  unpack_codes(n, {codes, out.size()});
  for (std::int64_t g = 0; g < groups(); ++g) {
    const Level& at = level(n, g);
    for_group(*this, n % kPanel, g, [&](std::int64_t k, std::int64_t, int) {
      out[static_cast<std::size_t>(k)] = static_cast<std::int8_t>(codes[k] * at.scale + at.minus_zero);
    });
  }
}

}  // namespace oasr::kernels
