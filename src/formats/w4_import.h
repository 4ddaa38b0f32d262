// Numbers of other toolkits as 4-bit weights: exactly, or not at all, or with the error that it costs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/w4_weight.h"

namespace oasr::formats {

// A weight that was quantized and multiplied out again, with what it was quantized by: what a calibrator of
// QServe weights exports. All numbers were rounded to float16 once at most.
struct FakeQuantWeight {
  W4Form form = W4Form::per_group;
  ZeroDomain domain = ZeroDomain::pre_scaled;
  std::int64_t n = 0, k = 0;
  std::span<const float> weight;         // [N, K]
  std::span<const float> channel_scale;  // [N]
  std::span<const float> group_scale;    // [N, K / 128], integers; per group only
  // Per group [N, K / 128], per channel [N]. pre_scaled: codes, 0..15, or -8..7 throughout; post_scaled per
  // group: integers, already times the scale; per channel: what is subtracted.
  std::span<const float> zero;
};

// The weight it was. Some calibrators count codes from -8: then all are moved by 8, and the zeros with them.
// A zero per channel that is no code is rounded to float16, as the format stores it. Errors (bad_checkpoint):
// a code, scale or zero that is not an integer, with its place; those of check().
Result<W4Weight> recover(const FakeQuantWeight& fake);

// Plain 4-bit groups, as compressed-tensors stores them: w = scale · (q - zero), any positive scale.
struct Int4Groups {
  std::int64_t n = 0, k = 0, group_size = kGroup;
  std::span<const std::int8_t> q;     // [N, K], -8..7 (int-quantized)
  std::span<const float> scale;       // [N, K / 128]
  std::span<const std::int8_t> zero;  // [N, K / 128], -8..7; empty: symmetric
};

// The codes of words of eight (pack-quantized): element i of a word at bits 4 (i % 8), as q + 8. `words` is
// [rows, ceil(columns / 8)]. bad_checkpoint: another number of words.
Result<std::vector<std::int8_t>> unpack_words(std::span<const std::int32_t> words, std::int64_t rows,
                                              std::int64_t columns);

// What to do with scales that are no float16 times an integer.
enum class Inexact : std::uint8_t {
  refused,
  requantized,  // to the channel scale with the least error in the row, codes rounded again
};

struct ImportedW4 {
  W4Weight weight;  // pre_scaled, per group
  bool exact = true;
  // Of the numbers before and after: the root of sum (w - w')² over sum w², and of the row with the worst.
  double error = 0, worst_error = 0;
};

// Errors: unsupported, another group size, or inexact scales that are refused (with the error that
// requantizing would cost); bad_checkpoint: sizes, codes or scales that are none.
Result<ImportedW4> from_int4_groups(const Int4Groups& groups, Inexact inexact);

}  // namespace oasr::formats
