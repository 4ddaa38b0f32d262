// Intervals by drawing utterances with replacement.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace oasr::eval {

struct Interval {
  std::optional<double> low, high;
};

// What an utterance adds to a rate: errors over reference length.
struct Share {
  std::int64_t errors = 0, reference = 0;
};

// 95 % percentile intervals of several rates of the same utterances: shares[rate][utterance]. As
// many utterances as there are are drawn each time, with std::mt19937_64; the same seed gives the
// same intervals everywhere. Of `resamples` sorted rates those at floor(0.025 n) and ceil(0.975 n)
// − 1 are the ends. Draws without reference words are left out; nothing if all are.
std::vector<Interval> intervals(std::span<const std::vector<Share>> shares, int resamples,
                                std::uint64_t seed);

struct Paired {
  std::optional<double> low, high;  // of b − a, in points
  std::optional<double> p;          // twice the smaller share of draws at or beyond zero, at most 1
};

// The same for the difference of two rates of the same utterances.
Paired paired_interval(std::span<const Share> a, std::span<const Share> b, int resamples,
                       std::uint64_t seed);

}  // namespace oasr::eval
