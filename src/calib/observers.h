// From what an input looks like to the range that int8 keeps of it.
//
// An input is quantized with one scale, amax / 127: q = clamp(rint(x / scale), -127, 127).
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "calib/histogram.h"

namespace oasr::calib {

inline constexpr std::string_view kDefaultObserver = "mse";

// A row of the table. amax(): finite and at least kernels::kLeastAmax, so that a scale is positive,
// whatever was seen (nothing, zeros only, subnormal numbers).
struct Observer {
  std::string_view name;
  std::string_view what;  // for help
  float (*amax)(const Histogram& histogram);
};
std::span<const Observer> observers();
// invalid_argument for an unknown name, with the nearest known one.
Result<const Observer*> find_observer(std::string_view name);

// What int8 with this range loses, if the values are uniform within each bin.
struct ClipError {
  double clipped = 0;         // share of the values with |x| > amax, 0 to 1
  double relative_error = 0;  // E[(x - Q(x))²] / E[x²]; 0 if all values are 0
};
ClipError examine(const Histogram& histogram, float amax);  // amax > 0

}  // namespace oasr::calib
