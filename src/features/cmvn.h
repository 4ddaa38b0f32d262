// Global mean and variance normalisation of features, as WeNet models carry it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace oasr {

// y = (x - mean) · istd, two roundings, for every channel of a frame.
struct Cmvn {
  std::vector<float> mean, istd;  // [channels]

  // frames: [T, channels] row-major, in place.
  void apply(std::span<float> frames) const;
};

// From the sums over the frames of a training set: mean = sum / frames, istd = 1 / sqrt(max(variance,
// 1e-20)) with variance = sum of squares / frames - mean², in double, rounded to float once.
//
// cmvn_from_json reads WeNet's {"mean_stat": […], "var_stat": […], "frame_num": N}; cmvn_from_kaldi
// Kaldi's text matrix "[ sums frames squares 0 ]". bad_checkpoint, with `where` (the file) and what is
// wrong: another number of channels, a value that is no finite number, no frames, any other form.
Result<Cmvn> cmvn_from_json(std::string_view text, std::string_view where, std::int64_t channels);
Result<Cmvn> cmvn_from_kaldi(std::string_view text, std::string_view where, std::int64_t channels);

}  // namespace oasr
