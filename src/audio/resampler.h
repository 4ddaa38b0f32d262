// Streaming change of sample rate (soxr, high quality), mono.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"

struct soxr;

namespace oasr {

// n samples in give floor(n * to / from + 1/2) samples out, the filter's delay removed. Equal rates
// pass samples through untouched. The output does not depend on how the input is cut.
class Resampler {
 public:
  // Rates in Hz.
  static Result<Resampler> create(int from, int to);

  // Appends to `out` what `samples` give.
  Status push(std::span<const float> samples, std::vector<float>& out);

  // Appends the rest; nothing may be pushed afterwards.
  Status finish(std::vector<float>& out);

 private:
  struct Delete {
    void operator()(soxr* handle) const;
  };
  Resampler(int from, int to, soxr* handle) : from_(from), to_(to), handle_(handle) {}

  Status process(std::span<const float> samples, bool last, std::vector<float>& out);

  int from_;
  int to_;
  std::unique_ptr<soxr, Delete> handle_;  // none when the rates are equal
};

}  // namespace oasr
