// CTC prefix beam search of many whole utterances on a GPU, over what ctc_frames() left there.
//
// Contract: the hypotheses, scores, frames and confidences of decode::CtcPrefixBeam without phrases, bit for bit: the
// arithmetic is the same source (decode/log_math.h), the order of candidates is total. Memory is reserved for the most
// that the frames can make of it: every frame adds at most `beam` prefixes and `beam` emissions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "decode/ctc_prefix_beam.h"
#include "device/gpu.h"
#include "kernels/ctc_frames/op.h"

namespace oasr::kernels {

inline constexpr int kMostCtcBeam = 32;  // hypotheses, and tokens of a frame

// Consecutive rows; utterances have no row in common.
struct CtcBeamUtterance {
  std::int32_t first_row = 0, frames = 0;
};

struct CtcBeamResult {
  double score;
  std::int32_t length;    // tokens; -1: there is no such hypothesis
  std::int32_t reserved;
};
struct CtcBeamToken {
  TokenId token;
  std::int32_t frame;
  float log_probability;  // the greatest of its frames
};

// Of a search over M rows, in one block of memory that begins at a multiple of 8 bytes.
struct CtcBeamMemory {
  CtcBeamMemory() = default;
  CtcBeamMemory(float* memory, std::int64_t rows, std::int64_t utterances, int beam);
  static std::int64_t floats(std::int64_t rows, std::int64_t utterances, int beam);
  // What the host reads of it is at its end: so many numbers, `results` and `tokens` when they are copied to `memory`.
  static std::int64_t read_floats(std::int64_t rows, std::int64_t utterances, int beam);
  static CtcBeamMemory read_at(float* memory, std::int64_t utterances, int beam);

  unsigned long long* nodes = nullptr;  // [2 · beam · M]: a hash table for each utterance
  float* heights = nullptr;             // [beam · M]: of emissions, their log-probability
  std::int32_t* befores = nullptr;      // [beam · M]: of emissions, the one before
  CtcBeamResult* results = nullptr;     // [utterances, beam], best first
  CtcBeamToken* tokens = nullptr;       // of an utterance with frames [first_row, …): [beam, frames] from beam · first_row on
};

struct CtcBeamArgs {
  CtcFrameRows frames;
  std::int64_t rows = 0;  // M
  int width = 0;
  TokenId blank = 0;
  int first_beam = 10;    // 1 … width
  int second_beam = 10;   // both at most kMostCtcBeam
  double blank_skip = 2;  // a probability; above 1: off
  std::span<const CtcBeamUtterance> utterances;
  CtcBeamMemory memory;   // of second_beam
};

// Frames and memory are the GPU's.
void ctc_prefix_beam(Gpu& gpu, const CtcBeamArgs& args);
// The same source on the host, for tests: what goes side by side on a GPU goes one after another, forwards or
// backwards.
void ctc_prefix_beam_reference(const CtcBeamArgs& args, bool backwards);

// Of utterance number `index`, from results and tokens on the host.
std::vector<decode::CtcHypothesis> ctc_hypotheses(const CtcBeamMemory& memory, int beam, std::int64_t index,
                                                  const CtcBeamUtterance& utterance);

}  // namespace oasr::kernels
