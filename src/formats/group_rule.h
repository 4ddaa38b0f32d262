// How the values of a group become codes, and how far from zero they may lie.
//
// Values are in units of the channel's scale. A rule turns the range [low, high] of a group into an integer
// scale and zero, and each value into a code; code · scale - scaled_zero has to be an int8. The range that is
// left for the values follows from that: protective_bound() finds it.
#pragma once

#include <algorithm>

#include "formats/w4_weight.h"

namespace oasr::formats {

// To nearest, ties to even, for |x| < 2⁵¹: the sum has no bits below the units.
inline double round_even(double x) { return (x + 0x1.8p52) - 0x1.8p52; }

struct GroupRule {
  ZeroDomain domain;
  bool integers;      // values are integers; otherwise any real number
  bool widened;       // the range is made to contain zero
  bool zero_outside;  // pre_scaled: code = rint(value / scale) + z, another one at ties
};

// A rule for hands and proofs: integers, the range as it is. A narrow range without zero in it is lost.
inline constexpr GroupRule kTeachingRule{
    .domain = ZeroDomain::pre_scaled, .integers = true, .widened = false, .zero_outside = true};
// The encoder's.
inline constexpr GroupRule kPreScaledRule{
    .domain = ZeroDomain::pre_scaled, .integers = false, .widened = true, .zero_outside = false};
inline constexpr GroupRule kPostScaledRule{
    .domain = ZeroDomain::post_scaled, .integers = false, .widened = false, .zero_outside = false};
const GroupRule& group_rule(ZeroDomain domain);

struct GroupParameters {
  int scale = 1;        // 1..127
  int scaled_zero = 0;  // z · scale, or an int8
  friend bool operator==(const GroupParameters&, const GroupParameters&) = default;

  double value(double code) const { return code * scale - scaled_zero; }
};

// rint is round_even().
//   scale = max(1, rint((high - low) / 15))
//   pre_scaled:  z = clamp(rint(-low / scale), 0, 15), scaled_zero = z · scale
//   post_scaled: scaled_zero = clamp(rint(-low), -128, 127)
GroupParameters group_parameters(const GroupRule& rule, double low, double high);

//   pre_scaled:  clamp(rint(value / scale + z), 0, 15)
//   post_scaled: clamp(rint((value + scaled_zero) / scale), 0, 15)
inline double group_code(const GroupRule& rule, const GroupParameters& group, double value) {
  const double scale = group.scale, zero = group.scaled_zero;
  const double code = rule.domain == ZeroDomain::post_scaled ? round_even((value + zero) / scale)
                      : rule.zero_outside                    ? round_even(value / scale) + zero / scale
                                                             : round_even(value / scale + zero / scale);
  return std::clamp<double>(code, 0, kMostCode);
}

// What w8 has to lie in.
struct ByteLimits {
  int least = -127, most = 127;
};

// Whether all groups with values within ±bound become values within the limits. A code rises with its value,
// so the ends of every range tell; of real numbers, those on a grid of 1/8: scale, zero and codes change
// where an end, or a difference of two, is a multiple of 1/2, and the grid has points at and between those,
// in every order.
bool bound_holds(const GroupRule& rule, int bound, const ByteLimits& limits = {});

// The greatest bound up to 127 that holds.
int protective_bound(const GroupRule& rule, const ByteLimits& limits = {});

}  // namespace oasr::formats
