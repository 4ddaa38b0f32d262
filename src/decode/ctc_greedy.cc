#include "decode/ctc_greedy.h"

#include <algorithm>

#include "decode/log_math.h"

namespace oasr::decode {

void CtcGreedy::accept(const CtcFrames& frames) {
  for (int i = 0; i < frames.frames; ++i) {
    const auto [best, score] = frames.tokens(i).front();
    path_.score += double{score};
    // The newest token's run goes on, or ended with the frame before, whose likeliest it was.
    if (!path_.tokens.empty() && frames_ == run_end_) {
      CtcToken& token = path_.tokens.back();
      token.confidence = std::max(token.confidence, exp_of_negative(double{frames.tokens_before(i).front()}));
    }
    if (best != frames.blank && best != last_) path_.tokens.push_back({best, frames_, exp_of_negative(double{score})});
    last_ = best;
    ++frames_;
    if (best != frames.blank) run_end_ = frames_;
  }
}

void CtcGreedy::reset() {
  path_.tokens.clear();
  path_.score = 0;
  last_ = -1;
  frames_ = run_end_ = 0;
}

}  // namespace oasr::decode
