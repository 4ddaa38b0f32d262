// A CTC model's posteriors as whole rows, for what asks for any token at any frame (ctc_prefix_score.h). Searches
// read less: ctc_frames.h.
#pragma once

#include <cstddef>
#include <span>

#include "text/token_id.h"

namespace oasr::decode {

// Log-probabilities [frames, vocabulary] of one piece of an utterance, row-major, borrowed.
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
