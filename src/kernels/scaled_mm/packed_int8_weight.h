// An int8 weight with a scale per output channel, in the layout of the kernels.
#pragma once

#include <cstdint>
#include <span>

#include "device/memory.h"

namespace oasr::kernels {

// [N, K] as panels of 16 output channels; in a panel, four k of a channel are neighbours: the
// operand of one dot-product instruction, and 64 bytes deep of one matrix-unit tile. One layout for
// every lane, so a weight is packed once, whatever runs it.
class PackedInt8Weight {
 public:
  static constexpr std::int64_t kPanel = 16;  // channels
  static constexpr std::int64_t kQuad = 4;    // k side by side
  static constexpr std::int64_t kDepth = 64;  // K is padded with zeros to a multiple of this
  static constexpr bool kFloatZeros = false;  // the weight is scale · code, without more
  // A sum of K products of int8 values fits in int32 up to here.
  static constexpr std::int64_t kGreatestK = 131'071;

  PackedInt8Weight() = default;
  // weight [N, K] row-major, any int8 values; scale [N]. 1 <= K <= kGreatestK.
  // A convolution's weight, [C_out, taps, C_in] or [C_out, height, width, C_in], is its own [N, K].
  static PackedInt8Weight pack(std::int64_t n, std::int64_t k, std::span<const std::int8_t> weight,
                               std::span<const float> scale);

  // Moves the numbers to a GPU, whose kernels then are the only ones that can use them: rows(), scale().
  void place(Gpu& gpu);
  bool placed() const { return placed_; }

  std::int64_t n() const { return n_; }
  std::int64_t k() const { return k_; }
  std::int64_t panels() const { return (n_ + kPanel - 1) / kPanel; }
  std::int64_t padded_k() const { return (k_ + kDepth - 1) / kDepth * kDepth; }
  std::size_t bytes() const { return data_.size() + scale_.size() + offset_.size(); }

  // Placed: [N][padded_k], on the GPU.
  const std::int8_t* rows() const { return reinterpret_cast<const std::int8_t*>(data_.data()); }

  // Not placed: [padded_k / 4][16][4] of one panel, aligned to 64 bytes.
  const std::int8_t* panel(std::int64_t p) const {
    return reinterpret_cast<const std::int8_t*>(data_.data()) + p * padded_k() * kPanel;
  }
  // Per channel, padded to whole panels (with zeros).
  const float* scale() const { return reinterpret_cast<const float*>(scale_.data()); }
  // Not placed: -128 · (sum of the channel's weights): with u8 activations q + 128, dot + offset is the sum.
  const std::int32_t* offset() const { return reinterpret_cast<const std::int32_t*>(offset_.data()); }

  // Row n as it was given (embedding lookup in a tied head; the references); not placed. out: K values.
  void unpack_row(std::int64_t n, std::span<std::int8_t> out) const;

 private:
  std::int64_t n_ = 0, k_ = 0;
  bool placed_ = false;
  Memory data_, scale_, offset_;
};

}  // namespace oasr::kernels
