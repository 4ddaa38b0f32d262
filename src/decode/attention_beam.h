// Beam search of encoder-decoder models that know no timestamps, alone or together with CTC.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "decode/ctc_prefix_score.h"
#include "decode/scores.h"
#include "decode/search.h"

namespace oasr::decode {

struct AttentionBeamOptions {
  int beam_size = 10;
  double length_penalty = 0;  // results are ranked by score / length^length_penalty
  int max_new_tokens = 0;     // > 0; WeNet: the number of encoder frames
  // One-pass decoding with CTC: score = (1 - ctc_weight) attention + ctc_weight CTC prefix score.
  // Nothing: attention alone.
  std::optional<CtcScores> ctc = {};
  double ctc_weight = 0.3;
  // With CTC: so many times beam_size tokens of a hypothesis, likeliest by attention, are scored.
  double candidates = 1.5;
};

struct AttentionHypothesis {
  std::vector<TokenId> tokens;  // after the prompt, without eos
  double score = 0;             // combined, before the length penalty
  double attention_score = 0;   // log-probability, eos included if it ended
  double ctc_score = 0;         // of the beginning, or of all tokens if it ended; 0 without CTC
  bool ended = false;           // by eos, not by the token limit
};

// WeNet's attention_beam_search as a Search: in each step every unfinished hypothesis offers its
// beam_size likeliest tokens, finished ones themselves, and the beam_size best go on (equals keep
// the order hypothesis, then token rank). Ends when all are finished or max_new_tokens are chosen.
// For the length penalty an empty hypothesis counts as length 1, and the prompt never counts (the
// reference divides by 0, and counts a start symbol that is not eos).
//
// With CTC (Watanabe et al. 2017) eos is always among the candidates, and what CTC makes
// impossible, as the blank, is dropped.
class AttentionBeam final : public Search {
 public:
  // `start.eot` is eos; `ctc` is borrowed. rows.size() >= beam_size.
  AttentionBeam(SearchStart start, const AttentionBeamOptions& options, const LogitRules& rules,
                std::span<const RowId> rows);

  // When done: best first, at most beam_size; never empty.
  std::vector<AttentionHypothesis> nbest() const;
  std::vector<Hypothesis> results() const override;

 private:
  struct Entry {
    History history;
    int beam = -1;      // of beams_; -1: finished
    int ctc_slot = -1;  // of its state; -1: none
    double score = 0, attention = 0, ctc = 0;
  };
  struct Candidate {
    std::size_t from;  // entry
    TokenId token;     // eot: it ends, or has ended
    double score, attention, ctc;
  };

  void select(std::span<float> logits, int vocabulary_size) override;
  void finish() override { beams_.clear(); }
  void offer_tokens(std::size_t from, std::span<float> logits);
  void offer(const Candidate& candidate);
  void take(const Candidate& candidate);
  int free_slot() const;

  AttentionBeamOptions attention_;
  std::optional<CtcPrefixScorer> ctc_;
  std::size_t width_;
  std::vector<Entry> entries_, next_entries_;  // by falling score
  std::vector<Beam> next_;
  std::vector<Candidate> kept_;
  std::vector<ScoredToken> best_;
};

}  // namespace oasr::decode
