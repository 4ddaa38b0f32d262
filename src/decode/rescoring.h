// Second pass of a two-pass model: its attention decoders score the hypotheses of the first.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "decode/ctc_prefix_beam.h"

namespace oasr::decode {

// The small interface through which rescoring sees the decoders of a model. Rows are independent: a
// hypothesis' scores are the same bits whatever others are in the call. Not thread-safe.
class SequenceScorer {
 public:
  virtual ~SequenceScorer() = default;

  // A hypothesis of n tokens (none is possible), without sos and eos, and where its
  // log-probabilities go.
  struct Item {
    int utterance = 0;  // which of the encoded utterances that the scorer holds
    std::span<const TokenId> tokens;
    // [n + 1]: of token i after those before it, then of eos after them all.
    std::span<float> left;
    // [n + 1]: of token i after those behind it (read from the end), then of eos after them all.
    // Empty: not wanted.
    std::span<float> right;
  };

  virtual bool has_right_to_left() const = 0;
  // One pass over the weights for all items.
  virtual void score(std::span<const Item> items) = 0;
};

struct RescoringOptions {
  double ctc_weight = 0.5;
  double reverse_weight = 0;  // of the right-to-left decoder, 0 to 1
};

struct RescoredHypothesis {
  CtcHypothesis first;  // as the first pass gave it
  double score = 0;     // (1 - reverse_weight) left + reverse_weight right + ctc_weight first.score
  double left_score = 0;   // log-probabilities of the tokens and eos, summed
  double right_score = 0;  // 0 with reverse_weight 0
  // exp of the decoders' part of the score, divided by n + 1.
  double confidence = 0;
  // Probabilities by the decoder; with reverse_weight > 0 the mean of both decoders'.
  std::vector<double> token_confidences;
};

// What one utterance brings.
struct RescoringInput {
  int utterance = 0;  // as the scorer counts them
  std::span<const CtcHypothesis> hypotheses;
};

// WeNet's attention_rescoring: every utterance's hypotheses, best first; equals keep the order of
// the first pass. One score() call for all utterances. Sums are in double, token by token.
// Errors (invalid_argument): weights that are not finite, ctc_weight below 0, reverse_weight
// outside [0, 1], or above 0 where the model has no right-to-left decoder (WeNet then ignores it).
Result<std::vector<std::vector<RescoredHypothesis>>> rescore(SequenceScorer& scorer,
                                                             std::span<const RescoringInput> inputs,
                                                             const RescoringOptions& options);

}  // namespace oasr::decode
