// What the searches over CTC posteriors read of a model's frames, whatever the size of its vocabulary.
#pragma once

#include <cstddef>
#include <span>

#include "decode/scored_token.h"
#include "text/token_id.h"

namespace oasr::decode {

// The likeliest tokens of each frame of one piece of an utterance, borrowed. A search takes any number of pieces;
// its results do not depend on where they were cut.
struct CtcFrames {
  int frames = 0;
  int width = 0;  // tokens of a frame, 1 … vocabulary
  int vocabulary = 0;
  TokenId blank = 0;
  // [frames, width]: in falling order of their log-probabilities, of equals the lower ids first. A token of
  // probability 0 stands for none.
  std::span<const ScoredToken> likeliest;
  // [frames, width]: log-probabilities of the tokens that the frame before shows as its likeliest, in the order
  // there. They tell how long a token lasts. Of the utterance's first frame they mean nothing.
  std::span<const float> again;
  std::span<const float> blanks;  // [frames]: the blank's log-probabilities

  std::span<const ScoredToken> tokens(int frame) const { return row(likeliest, frame); }
  std::span<const float> tokens_before(int frame) const { return row(again, frame); }

 private:
  template <class T>
  std::span<const T> row(std::span<const T> rows, int frame) const {
    const auto size = static_cast<std::size_t>(width);
    return rows.subspan(static_cast<std::size_t>(frame) * size, size);
  }
};

}  // namespace oasr::decode
