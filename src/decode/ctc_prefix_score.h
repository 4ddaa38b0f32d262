// CTC's opinion of a beginning: how likely is any transcript that starts with these tokens
// (Watanabe et al. 2017, "Hybrid CTC/Attention Architecture", algorithm 2).
#pragma once

#include <span>
#include <vector>

#include "decode/ctc_scores.h"

namespace oasr::decode {

// Prefix scores over the posteriors of a whole utterance, which it borrows. States of prefixes live
// in slots that the caller numbers. Bits as CtcPrefixBeam. Not thread-safe.
class CtcPrefixScorer {
 public:
  CtcPrefixScorer(const CtcScores& scores, int slots);

  // Slot `slot` becomes the empty prefix.
  void start(int slot);
  // Slot `to` becomes the prefix of `from` and `token`. The slots differ.
  void extend(int from, TokenId token, int to);

  // log P(a transcript begins with the slot's prefix and `token`); -inf for the blank.
  double score(int slot, TokenId token) const;
  // log P(the transcript is the slot's prefix).
  double score_end(int slot) const;

 private:
  struct Slot {
    TokenId last = -1;  // -1: the empty prefix
    // By frame: log-probability of the alignments of exactly the prefix up to and with this frame
    // that end in a token, in blank, and of both.
    std::vector<double> non_blank, blank, both;
  };
  // What the frames up to `frame` - 1 pass on to a first emission of `token` at `frame`.
  double lead(const Slot& slot, TokenId token, int frame) const;

  CtcScores scores_;
  std::vector<Slot> slots_;
};

}  // namespace oasr::decode
