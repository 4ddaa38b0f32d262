// From the frames that emit tokens to the times of tokens and words.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decode/ctc_greedy.h"
#include "text/tokenizer.h"

namespace oasr::decode {

struct TokenClock {
  double seconds_per_frame = 0.04;  // of the encoder: frame shift times subsampling
  double offset = 0;                // seconds, of frame 0
  // A token begins at most this long before its end. Nothing: it begins where the one before it
  // ended, whatever pause lies between.
  std::optional<double> longest_token = {};
};

struct TokenSpan {
  double start = 0, end = 0;  // seconds
};

// A token owns the frames after its predecessor's up to and with its own; the first begins at its
// own frame. `tokens` have rising frames.
std::vector<TokenSpan> token_spans(std::span<const CtcToken> tokens, const TokenClock& clock);

struct TimedWord {
  std::string text;  // valid UTF-8, with a leading space if one stands before it in the text
  double start = 0, end = 0;
  double confidence = 0;        // mean over its tokens
  std::size_t first_token = 0;  // its tokens, [first, first + count); words may share one
  std::size_t token_count = 0;
};

// The words of the text that `tokens` spell: divided at white space; each CJK, kana or Hangul
// character is a word. A word lasts from its first character to its last; a token's characters
// share its time evenly. Special tokens spell nothing.
std::vector<TimedWord> word_times(std::span<const CtcToken> tokens, const Tokenizer& tokenizer,
                                  const TokenClock& clock);

}  // namespace oasr::decode
