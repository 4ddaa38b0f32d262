// CTC prefix beam search: probabilities of token sequences, summed over all of their alignments.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "decode/context_graph.h"
#include "decode/ctc_frames.h"
#include "decode/ctc_greedy.h"
#include "decode/prefix_tree.h"

namespace oasr::decode {

struct CtcBeamOptions {
  int vocabulary = 0;
  TokenId blank = 0;
  int first_beam = 10;   // tokens of a frame that are looked at
  int second_beam = 10;  // hypotheses that are kept
  // On frames where the blank is likelier than this, only the blank is looked at. Nothing: off.
  std::optional<double> blank_skip = {};
  std::shared_ptr<const ContextGraph> context = {};  // nothing: no phrases are preferred
};

struct CtcHypothesis {
  std::vector<CtcToken> tokens;
  double score = 0;          // ctc_score + context_score
  double ctc_score = 0;      // log-probability, of all alignments in the beam together
  double context_score = 0;  // what phrases gave, unfinished ones taken back

  std::vector<TokenId> ids() const;
};

// The search of WeNet's ctc_prefix_beam_search (Hannun et al. 2014), frame by frame: the likeliest
// first_beam tokens (of equals the lower ids) extend every hypothesis, the second_beam best of the
// sums are kept; equals keep the order in which the reference makes them: token rank, hypothesis.
// Prefixes of probability 0 are dropped, which the reference keeps as scores of -inf.
//
// A token's frame is the reference's: of the likeliest single alignment, and of a token that it
// repeats the last frame. Its confidence is the greatest posterior over those frames and the one
// after them.
//
// Bits do not depend on the processor or on how frames come in pieces. No allocation by accept()
// but for growth with the length of the hypotheses. Not thread-safe.
class CtcPrefixBeam {
 public:
  // Errors (invalid_argument): sizes that are not positive, a blank outside the vocabulary,
  // blank_skip outside (0, 1].
  static Result<CtcPrefixBeam> make(const CtcBeamOptions& options);

  // Of frames that show first_beam tokens at least, or the whole vocabulary.
  void accept(const CtcFrames& frames);

  // Best first, as if the utterance ended here: unfinished phrases are taken back, then sorted
  // (equals keep the beam's order). Never empty. More frames may follow.
  std::vector<CtcHypothesis> results() const;

  // The best hypothesis of the beam as it stands, phrases under way included; for partial results.
  CtcHypothesis best() const;

  // What all hypotheses begin with, for partial results: within the utterance it only grows.
  std::vector<TokenId> stable_prefix() const;

  int frames() const { return frame_; }
  // Frames since the best hypothesis' newest token's; all frames if it has none.
  int trailing_frames() const;
  const CtcBeamOptions& options() const { return options_; }

  // For a new utterance, keeping buffers. Another context may be given to it.
  void reset();
  void reset(std::shared_ptr<const ContextGraph> context);

 private:
  struct Hypothesis {
    NodeId prefix = PrefixTree::kRoot;  // held
    TokenId last = -1;
    double blank = 0;      // log-probability of the alignments that end in blank
    double non_blank = 0;  // and of the others
    double score = 0;      // of all
    // The likeliest alignment of each kind, and its emissions (held).
    double best_blank = 0, best_non_blank = 0;
    NodeId blank_times = kNoNode, non_blank_times = kNoNode;
    ContextGraph::State context = ContextGraph::kStart;
    double context_score = 0;

    double best() const { return best_blank > best_non_blank ? best_blank : best_non_blank; }
    NodeId times() const { return best_blank > best_non_blank ? blank_times : non_blank_times; }
  };

  // A prefix that the frame makes possible, before emissions and nodes exist.
  struct Candidate {
    double total = 0;  // score with context: the order
    int order = 0;     // when the reference meets it
    int from = 0;      // hypothesis: itself if it stays, else the parent
    int rank = -1;     // of the added token in best_; -1: the prefix stays
    int parent = -1;   // of one that stays: the live hypothesis that also leads here
    double blank = 0, non_blank = 0, score = 0;
  };

  explicit CtcPrefixBeam(const CtcBeamOptions& options);

  void step(const CtcFrames& frames, int frame);
  void choose_tokens(const CtcFrames& frames, int frame);
  void raise_confidences(std::span<const float> tokens_before);
  void add_stays();
  void add_extensions();
  void consider(const Candidate& candidate);
  void keep();
  Hypothesis stay(const Candidate& candidate);
  Hypothesis extend(const Candidate& candidate);
  void release(const Hypothesis& hypothesis);
  int event(int rank, int hypothesis, bool second) const {
    return (rank * options_.second_beam + hypothesis) * 2 + static_cast<int>(second);
  }
  double lead(const Hypothesis& parent, TokenId token) const;
  CtcHypothesis result(const Hypothesis& hypothesis, double context_score) const;

  CtcBeamOptions options_;
  PrefixTree tree_;
  EmissionLists emissions_;
  std::vector<Hypothesis> beam_, next_;
  int frame_ = 0;

  // Of the frame at hand.
  std::span<const ScoredToken> best_;  // empty between frames
  ScoredToken skipped_;                // the blank, where it is all that is looked at
  std::vector<int> rank_of_;          // [vocabulary]: place in best_; -1: not there
  std::vector<unsigned char> taken_;  // [hypothesis, rank]: the extension is a hypothesis already
  std::vector<Candidate> kept_;       // sorted, at most second_beam
  struct Fresh {
    NodeId emission = kNoNode;
    int rank = 0;  // of its token in its frame
  };
  std::vector<Fresh> fresh_;  // emissions of the frame before
};

}  // namespace oasr::decode
