// Integer 4-bit weights for int8 products: what their numbers mean and which of them are allowed.
//
// A row n of a weight [N, K] has codes u in 0..15 and one float16 scale. In the grouped form runs of 128
// codes have an integer scale and an integer zero, so that a product multiplies int8 and knows no group:
//
//     w8[n, k] = u[n, k] · group_scale[n, g] - scaled_zero[n, g]      g = k / 128
//     w[n, k]  = channel_scale[n] · w8[n, k]
//
// In the form per channel there is one level: w[n, k] = channel_scale[n] · u[n, k] - channel_zero[n].
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/enum_table.h"
#include "base/result.h"

namespace oasr::formats {

enum class W4Form : std::uint8_t { per_group, per_channel };

// What a zero is, before or after the scale.
enum class ZeroDomain : std::uint8_t {
  pre_scaled,   // z · scale, z a code: the value 0 is exact
  post_scaled,  // anything: per group an int8, per channel a float16
};
std::span<const EnumName<W4Form>> w4_form_names();
std::span<const EnumName<ZeroDomain>> zero_domain_names();

inline constexpr std::int64_t kGroup = 128;
inline constexpr int kMostCode = 15;

// Columns up to which the sum of a product of int8 values is an int32, whatever they are. Products that shift
// one side to be unsigned add up modulo 2³² and take the shift out again: their bound is the same.
inline constexpr std::int64_t kMostColumns = 131071;

struct W4Weight {
  W4Form form = W4Form::per_group;
  ZeroDomain domain = ZeroDomain::pre_scaled;
  std::int64_t n = 0, k = 0;
  std::vector<std::uint8_t> codes;        // [N, K]
  std::vector<float> channel_scale;       // [N], float16 values
  std::vector<std::uint8_t> group_scale;  // [N, K / 128], 1..127; per group only
  std::vector<std::int16_t> scaled_zero;  // [N, K / 128]; per group only
  std::vector<float> channel_zero;  // [N]; per channel only: z · channel_scale, exactly, or a float16 value

  // The columns that share a scale.
  std::int64_t group_size() const { return form == W4Form::per_group ? kGroup : k; }
  std::int64_t groups() const { return form == W4Form::per_group ? k / kGroup : 0; }  // of a row

  // All vectors of the sizes that a shape asks for.
  static W4Weight sized(W4Form form, ZeroDomain domain, std::int64_t n, std::int64_t k);
  friend bool operator==(const W4Weight&, const W4Weight&) = default;
};

// Whether weights of a shape can have a form: K is a multiple of 128 per group, and at most kMostColumns.
// unsupported: the shape and the constraint.
Status check_shape(W4Form form, std::int64_t n, std::int64_t k);

// What can be wrong with a weight, in the order of the checks. The names stand in errors.
enum class W4Rule : std::uint8_t {
  sizes,          // as many codes, scales and zeros as the shape says
  channel_scale,  // a positive, finite float16
  channel_zero,   // z · channel_scale with z in 0..15, or a finite float16
  code,           // 0..15
  group_scale,    // 1..127
  zero,           // z · group_scale with z in 0..15, or -128..127
  product,        // u · group_scale <= 255: a multiplication of bytes does not carry
  value,          // -128 <= w8 <= 127
};
std::span<const EnumName<W4Rule>> w4_rule_names();

// The codes that `product` and `value` are asked of.
enum class CodeSet : std::uint8_t { occurring, all };

// Whether a weight has a shape and keeps every rule, in every group. bad_checkpoint: the channel, the group
// and the rule.
Status check(const W4Weight& weight, CodeSet codes = CodeSet::occurring);

// Row n as int8: w8, or u - z per channel (zero domain pre_scaled only).
void decode_row(const W4Weight& weight, std::int64_t n, std::span<std::int8_t> out);

// Row n as numbers: one rounding, of the difference per channel; exact otherwise.
void decode_row(const W4Weight& weight, std::int64_t n, std::span<float> out);

// The code that stands for 0 in channel n: per channel, zero domain pre_scaled only.
int zero_code(const W4Weight& weight, std::int64_t n);

}  // namespace oasr::formats
