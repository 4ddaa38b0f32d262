// The packed layout of 4-bit weights: QServe's tensors, which kernels read without repacking.
//
// Codes lie in tiles of 32 channels by 32 columns, 512 bytes each, tiles in row-major order. With
// n = 16 n1 + 8 n2 + n3 and k = 16 k1 + 4 k2 + k3 inside a tile,
//
//     byte = (((n3 · 4 + k2) · 2 + k1) · 2 + n2) · 4 + k3       low nibble n1 = 0, high nibble n1 = 1
//
// so that the 16 bytes of lane n3 · 4 + k2 are its four registers of a 16 by 32 int8 fragment, twice. Scales
// and zeros of a group lie in the order of the lanes: place 4 n3 + j of 32 holds channel 8 j + n3. A zero is
// stored as the byte that is added modulo 256: w8 = u · scale + zero.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/w4_weight.h"
#include "tensor/dtype.h"

namespace oasr::formats {

inline constexpr std::int64_t kTile = 32, kTileBytes = kTile * kTile / 2;

struct NibblePlace {
  std::int64_t byte = 0;
  int shift = 0;  // 0 or 4
  friend bool operator==(const NibblePlace&, const NibblePlace&) = default;
};

// Where the code [n, k] of a weight with `columns` columns lies.
constexpr NibblePlace nibble_place(std::int64_t columns, std::int64_t n, std::int64_t k) {
  const std::int64_t tile = n / kTile * (columns / kTile) + k / kTile;
  const std::int64_t n1 = n / 16 % 2, n2 = n / 8 % 2, n3 = n % 8;
  const std::int64_t k1 = k / 16 % 2, k2 = k / 4 % 4, k3 = k % 4;
  return {tile * kTileBytes + (((n3 * 4 + k2) * 2 + k1) * 2 + n2) * 4 + k3, n1 == 0 ? 0 : 4};
}

// The order of 32 scales or zeros.
enum class ScaleOrder : std::uint8_t {
  quads,  // channels 0, 8, 16, 24, 1, 9, …: what kernels read
  pairs,  // 0, 8, 1, 9, … 7, 15, 16, 24, …: deepcompressor since February 2025; no file says so
};
std::span<const EnumName<ScaleOrder>> scale_order_names();

// Where the scale of channel n lies in a row of scales.
constexpr std::int64_t scale_place(ScaleOrder order, std::int64_t n) {
  const std::int64_t block = n / kTile * kTile, j = n % kTile / 8, n3 = n % 8;
  return block + (order == ScaleOrder::quads ? 4 * n3 + j : 16 * (j / 2) + 2 * n3 + j % 2);
}

// The byte that stands for a zero, and what a product of bytes makes with it: integers modulo 256.
constexpr std::uint8_t zero_byte(int scaled_zero) {
  return static_cast<std::uint8_t>(-static_cast<unsigned>(scaled_zero));
}
constexpr int byte_value(unsigned code, unsigned scale, std::uint8_t zero) {
  return static_cast<std::int8_t>(static_cast<std::uint8_t>(code * scale + zero));
}

// The tensors of a weight [N, K], borrowed. The names are the format's: s1 is a channel's, s2 a group's.
struct PackedW4View {
  W4Form form = W4Form::per_group;
  std::int64_t n = 0, k = 0;
  std::span<const std::uint8_t> qweight;   // [N, K / 2]
  std::span<const Half> s1_scales;         // [N]
  std::span<const std::int8_t> s2_scales;  // [K / 128, N], per group
  std::span<const std::int8_t> s2_zeros;   // [K / 128, N], per group
  std::span<const Half> s1_szeros;         // [N], per channel: subtracted
};

struct PackedW4 {
  W4Form form = W4Form::per_group;
  std::int64_t n = 0, k = 0;
  std::vector<std::uint8_t> qweight;
  std::vector<Half> s1_scales;
  std::vector<std::int8_t> s2_scales, s2_zeros;
  std::vector<Half> s1_szeros;

  PackedW4View view() const;
};

// Of all tensors: N · K / 2 of codes, and what a form adds to them.
std::int64_t packed_bytes(W4Form form, std::int64_t n, std::int64_t k);

// Whether the layout holds such a shape: check_shape(), and N and K multiples of 32.
Status check_packed_shape(W4Form form, std::int64_t n, std::int64_t k);

// Checks the weight first. Errors: those of check() and check_packed_shape(); bad_checkpoint for a
// channel_zero beyond float16.
Result<PackedW4> pack(const W4Weight& weight);

// The weight, checked: pack() undone. What no tensor says, the zero domain, is given and verified; so is the
// shape. The order of the scales can not be.
Result<W4Weight> unpack(const PackedW4View& packed, ZeroDomain domain, ScaleOrder order = ScaleOrder::quads);

}  // namespace oasr::formats
