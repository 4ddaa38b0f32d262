// The best path through CTC posteriors.
#pragma once

#include <vector>

#include "decode/ctc_frames.h"

namespace oasr::decode {

// A token of a CTC result and the frame that shows it.
struct CtcToken {
  TokenId id = 0;
  int frame = 0;          // of emission, counted from the utterance's first frame
  double confidence = 0;  // posterior, the greatest over its frames and the one after them

  bool operator==(const CtcToken&) const = default;
};

struct CtcBestPath {
  std::vector<CtcToken> tokens;
  double score = 0;  // log-probability of the path: the sum of each frame's greatest
};

// The likeliest token of every frame (of equals the lowest id); repetitions become one, blanks
// none. A token's frame is the first of its run. Incremental; allocates only for new tokens.
class CtcGreedy {
 public:
  void accept(const CtcFrames& frames);

  // Of the frames so far; more may follow.
  const CtcBestPath& result() const { return path_; }

  // Tokens are never taken back, but the newest one's confidence may still rise.
  int frames() const { return frames_; }
  // Frames since the newest token's run; all frames if there is no token.
  int trailing_frames() const { return frames_ - run_end_; }

  // For a new utterance, keeping buffers.
  void reset();

 private:
  CtcBestPath path_;
  TokenId last_ = -1;  // of the frame before; -1 at the start
  int frames_ = 0;
  int run_end_ = 0;  // one past the newest token's last frame
};

}  // namespace oasr::decode
