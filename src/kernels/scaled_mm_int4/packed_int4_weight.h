// A 4-bit weight with integer scales and zeros, in the layout of the kernels.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "tensor/tensor.h"

namespace oasr::kernels {

// [N, K] codes u of 0 … 15 that stand for the int8 weight u · s - z of PackedInt8Weight, where s and z are
// integers that hold along K for a group of kGroup or for all of it.
//
// Panels of 16 output channels. A line of 64 bytes holds eight k of each channel: four in the low halves of
// the channel's four bytes, the next four in the high halves, so that a mask and a shift give two operands of
// a dot-product instruction. After the lines of a group comes one of its scales and zeros: a group is read
// in the order of memory, and its sums are complete where its scales come.
class PackedInt4Weight {
 public:
  static constexpr std::int64_t kPanel = 16;   // channels
  static constexpr std::int64_t kGroup = 128;  // k that share s and z, where they do not hold for all
  static constexpr std::int64_t kDepth = 64;   // K is padded with code 0 to a multiple of this
  static constexpr std::int64_t kLine = 64;    // bytes
  static constexpr std::int64_t kLineK = 8;    // k of a line
  // A sum of K products of int8 values fits in int32 up to here.
  static constexpr std::int64_t kGreatestK = 131'071;
  static constexpr bool kFloatZeros = true;  // there may be some

  PackedInt4Weight() = default;
  // codes [N, K], scale [N] (one float a channel), group_scale [N, K / kGroup] of 1 … 127, group_zero
  // likewise and scaled already: u · group_scale - group_zero is an int8 value for every code that occurs. K
  // is a multiple of kGroup.
  static PackedInt4Weight pack_groups(std::int64_t n, std::int64_t k, std::span<const std::uint8_t> codes,
                                      std::span<const float> scale, std::span<const std::uint8_t> group_scale,
                                      std::span<const std::int16_t> group_zero);
  // s = 1, and z: zero [N] of 0 … 15, or none. Any K. float_zero [N], of foreign weights or empty: a
  // channel's value is scale · u - float_zero instead, in the order of scaled_mm_int4/op.h.
  static PackedInt4Weight pack_channels(std::int64_t n, std::int64_t k, std::span<const std::uint8_t> codes,
                                        std::span<const float> scale, std::span<const std::uint8_t> zero,
                                        std::span<const float> float_zero = {});

  std::int64_t n() const { return n_; }
  std::int64_t k() const { return k_; }
  std::int64_t panels() const { return (n_ + kPanel - 1) / kPanel; }
  std::int64_t padded_k() const { return (k_ + kDepth - 1) / kDepth * kDepth; }
  std::int64_t groups() const { return padded_k() / (group_lines_ * kLineK); }
  // Lines of codes in a group.
  std::int64_t group_lines() const { return group_lines_; }
  std::size_t bytes() const { return data_.size() + scale_.size() + float_zero_.size(); }

  // [groups] of [group_lines][16][4] bytes of two codes and [16] Level, aligned to 64 bytes.
  struct Level {
    std::int16_t scale, minus_zero;
  };
  const std::uint8_t* panel(std::int64_t p) const {
    return reinterpret_cast<const std::uint8_t*>(data_.data()) + p * panel_bytes();
  }
  std::int64_t panel_bytes() const { return groups() * (group_lines_ + 1) * kLine; }
  // Per channel, padded to whole panels (with zeros).
  const float* scale() const { return reinterpret_cast<const float*>(scale_.data()); }
  // Per channel like scale(), or null.
  const float* float_zero() const { return reinterpret_cast<const float*>(float_zero_.data()); }

  // Row n as it was given, K codes (checkpoints), and as int8 values u · s - z (the references).
  void unpack_codes(std::int64_t n, std::span<std::uint8_t> out) const;
  void unpack_row(std::int64_t n, std::span<std::int8_t> out) const;
  // Of row n and group g, zero with its own sign.
  int group_scale(std::int64_t n, std::int64_t g) const { return level(n, g).scale; }
  int group_zero(std::int64_t n, std::int64_t g) const { return -level(n, g).minus_zero; }

 private:
  PackedInt4Weight(std::int64_t n, std::int64_t k, std::int64_t group_lines, std::span<const float> scale);
  // The codes and levels of row n.
  void pack_row(std::int64_t n, const std::uint8_t* codes, const std::function<Level(std::int64_t g)>& level);
  const Level& level(std::int64_t n, std::int64_t g) const;
  // Where in its panel the level of channel j's group g is.
  std::int64_t level_byte(std::int64_t j, std::int64_t g) const {
    return ((g + 1) * (group_lines_ + 1) - 1) * kLine + j * 4;
  }

  std::int64_t n_ = 0, k_ = 0, group_lines_ = 1;
  AlignedBuffer data_, scale_, float_zero_;
};

}  // namespace oasr::kernels
