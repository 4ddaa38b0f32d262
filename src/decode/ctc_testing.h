// For tests: rows of log-probabilities.
#pragma once

#include <cmath>
#include <vector>

#include "decode/ctc_scores.h"
#include "decode/random.h"

namespace oasr::decode {

struct CtcRows {
  std::vector<float> values;
  int vocabulary = 0;

  int frames() const { return static_cast<int>(values.size()) / vocabulary; }
  CtcScores piece(int begin, int end) const {
    const auto width = static_cast<std::size_t>(vocabulary);
    return {std::span(values).subspan(static_cast<std::size_t>(begin) * width,
                                      static_cast<std::size_t>(end - begin) * width),
            end - begin, vocabulary, 0};
  }
  CtcScores all() const { return piece(0, frames()); }
};

// Log-probabilities of the given probabilities.
inline CtcRows rows_of(std::initializer_list<std::vector<double>> probabilities) {
  CtcRows rows;
  for (const auto& row : probabilities) {
    rows.vocabulary = static_cast<int>(row.size());
    for (const double p : row) rows.values.push_back(static_cast<float>(std::log(p)));
  }
  return rows;
}

// Normalised rows from logits in [-spread, spread]; the blank has `blank_bonus` more.
inline CtcRows random_rows(std::uint64_t seed, int frames, int vocabulary, double spread,
                           double blank_bonus = 0) {
  CtcRows rows;
  rows.vocabulary = vocabulary;
  std::uint64_t state = mix64(seed);
  for (int t = 0; t < frames; ++t) {
    std::vector<double> logits;
    double sum = 0;
    for (int v = 0; v < vocabulary; ++v) {
      state = mix64(state);
      const double u = static_cast<double>(state >> 11) * 0x1.0p-53;
      logits.push_back((2 * u - 1) * spread + (v == 0 ? blank_bonus : 0));
      sum += std::exp(logits.back());
    }
    for (const double logit : logits) {
      rows.values.push_back(static_cast<float>(logit - std::log(sum)));
    }
  }
  return rows;
}

}  // namespace oasr::decode
