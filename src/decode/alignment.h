// From cross-attention weights to the time of every token (Whisper's word timestamps).
#pragma once

#include <span>
#include <vector>

namespace oasr::decode {

// Cross-attention of the alignment heads, [heads, tokens, frames] row-major, each row a softmax
// over all frames of the window.
struct AttentionWeights {
  std::span<const float> values;
  int heads = 0;
  int tokens = 0;
  int frames = 0;
};

// [tokens, frames_used]: the weights of the first `frames_used` frames, renormalised to 1 a row,
// standardised over the tokens of each frame, median-filtered over 7 frames (reflected ends), and
// averaged over the heads. A frame where all tokens have the same weight gives 0.
std::vector<float> alignment_matrix(const AttentionWeights& weights, int frames_used);

struct AlignmentPath {
  std::vector<int> tokens;  // same sizes; both rise by 0 or 1 a step, from (0, 0)
  std::vector<int> frames;
};

// Dynamic time warping: the monotonic path through `scores` [tokens, frames] with the greatest sum,
// from the first cell to the last. Equal costs go along the frames.
AlignmentPath warp(std::span<const float> scores, int tokens, int frames);

// The first frame of every token on the path.
std::vector<int> first_frames(const AlignmentPath& path, int tokens);

}  // namespace oasr::decode
