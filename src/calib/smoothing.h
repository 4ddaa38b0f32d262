// SmoothQuant's scales: X Wᵀ = (X / s)(W s)ᵀ moves large input channels into the weight.
//
// s is a power of two, the nearest to the formula's value. Dividing and multiplying by it is exact, so the
// smoothed full-precision model computes the same bits as the original, whatever absorbs 1/s, and a
// calibrated histogram of X is one of X / s after a shift. Xiao et al. 2023, section 4.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace oasr::calib {

// Magnitudes that meet the scale of each channel, [K].
struct SmoothingInput {
  std::vector<float> input;   // greatest |X|: 0, a channel that calibration never saw active
  std::vector<float> weight;  // greatest |W| over all rows of all consumers
  // Greatest magnitude of what absorbs 1/s (gamma and beta, rows and bias); empty: a runtime smoother.
  std::vector<float> absorber;
};

struct Smoothing {
  std::vector<int> exponents = {};  // [K], s = 2^exponent; empty: not smoothed
  double alpha = 0;
  std::int64_t moved = 0;    // channels with s != 1
  std::int64_t idle = 0;     // never seen active: s = 1, so that they can not dominate later
  std::int64_t clamped = 0;  // held back by the guard

  bool identity() const { return moved == 0; }
  float scale(std::size_t channel) const;    // s
  float inverse(std::size_t channel) const;  // 1/s
};

// The exponents that a factor may have so that what is folded stays in the range of float16. 0 is one of
// them: a value that is out of range as it is stays where it is.
struct ExponentRange {
  int least, greatest;
  ExponentRange both(ExponentRange other) const;  // what this and the other allow
  ExponentRange inverse() const { return {-greatest, -least}; }
};
// Of 2^e, which multiplies numbers up to `raised` and divides those up to `lowered`: products up to 60000 and
// |e| up to 14, quotients up to 60000 and from 2^-14 on unless they were below. 0: nothing there.
ExponentRange half_range(double raised, double lowered);

// s = 2^round(log2(max|X|^alpha / max|W|^(1 - alpha))), alpha in [0, 1]. Held in the range in which all that is
// folded stays a normal number of float16: W s and absorber / s at most 60000, the absorber not below
// 2^-14 unless it was, 1/s of a runtime smoother in [2^-14, 2^14]. A weight column below 1e-5 of the greatest
// counts as that, so that a column of zeros has no infinite scale. A group without weights keeps s = 1.
Smoothing smooth(const SmoothingInput& input, double alpha);

// Makes the maxima of query heads that share a key/value head equal: `values` [query_heads · d], for a fold
// into the rows [kv_heads · d] of values. Nothing to do when the numbers of heads are equal.
void tie_heads(std::span<float> values, std::int64_t query_heads, std::int64_t kv_heads);

}  // namespace oasr::calib
