// The search of one utterance of a CTC model, in any mode but the attention ones: frames in, texts out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "decode/ctc_greedy.h"
#include "decode/ctc_prefix_beam.h"
#include "decode/rescoring.h"
#include "engine/ctc_plan.h"
#include "oasr/transcript.h"

namespace oasr::engine {

// One text of an utterance, with what is known of it.
struct CtcResult {
  std::vector<decode::CtcToken> tokens;
  double score = 0;       // log-probability as the mode defines it
  double confidence = 0;  // mean of the tokens' confidences
};

// Takes frames piece by piece. Copies of the search's options are its own.
class CtcSearch {
 public:
  static Result<CtcSearch> make(const CtcPlan& plan);

  void accept(const decode::CtcFrames& frames);

  // Best first; never empty.
  std::vector<decode::CtcHypothesis> hypotheses() const;
  // For partial results: the best text so far, and how many of its tokens will not change.
  std::vector<decode::CtcToken> best() const;
  std::size_t stable_tokens() const;
  // Frames since the last token was emitted, all of them if there is none.
  int trailing_frames() const;
  int frames() const { return greedy_.frames(); }

 private:
  CtcSearch() = default;

  decode::CtcGreedy greedy_;                     // also tells silence
  std::optional<decode::CtcPrefixBeam> beam_;    // nothing: greedy search
};

// The first pass' hypotheses as results.
std::vector<CtcResult> first_pass_results(const std::vector<decode::CtcHypothesis>& hypotheses);
std::vector<CtcResult> rescored_results(const std::vector<decode::RescoredHypothesis>& hypotheses);

// Text, tokens, times and words of one result that begins `offset` seconds into the recording. Times are
// those of the tokens' emissions.
Segment make_segment(const CtcPlan& plan, const CtcResult& result, double offset, double duration);

// The text of tokens.
std::string text_of(const CtcPlan& plan, std::span<const decode::CtcToken> tokens);

}  // namespace oasr::engine
