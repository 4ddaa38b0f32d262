#include "decode/ctc_greedy.h"

#include <algorithm>

#include "decode/log_math.h"
#include "decode/scores.h"

namespace oasr::decode {

void CtcGreedy::accept(const CtcScores& scores) {
  for (int i = 0; i < scores.frames; ++i) {
    const auto row = scores.row(i);
    const TokenId best = arg_max(row);
    path_.score += double{row[static_cast<std::size_t>(best)]};
    // The newest token's run goes on, or ended with the frame before.
    if (!path_.tokens.empty() && frames_ == run_end_) {
      CtcToken& token = path_.tokens.back();
      const float score = row[static_cast<std::size_t>(token.id)];
      token.confidence = std::max(token.confidence, exp_of_negative(double{score}));
    }
    if (best != scores.blank && best != last_) {
      path_.tokens.push_back(
          {best, frames_, exp_of_negative(double{row[static_cast<std::size_t>(best)]})});
    }
    last_ = best;
    ++frames_;
    if (best != scores.blank) run_end_ = frames_;
  }
}

void CtcGreedy::reset() {
  path_.tokens.clear();
  path_.score = 0;
  last_ = -1;
  frames_ = run_end_ = 0;
}

}  // namespace oasr::decode
