// What the searches over CTC posteriors see of a model: rows of log-probabilities, piece by piece.
#pragma once

#include <cstddef>
#include <span>

#include "text/token_id.h"

namespace oasr::decode {

// Log-probabilities [frames, vocabulary] of one piece of an utterance, row-major, borrowed. A
// search takes any number of pieces; its results do not depend on where they were cut.
struct CtcScores {
  std::span<const float> values;
  int frames = 0;
  int vocabulary = 0;
  TokenId blank = 0;

  std::span<const float> row(int frame) const {
    const auto width = static_cast<std::size_t>(vocabulary);
    return values.subspan(static_cast<std::size_t>(frame) * width, width);
  }
};

}  // namespace oasr::decode
