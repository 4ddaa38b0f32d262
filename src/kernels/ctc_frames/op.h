// Rows of a CTC head's logits become what searches read of them (decode/ctc_frames.h), so that of a large vocabulary
// little leaves a GPU.
//
// Contract (host, GPU and reference: the same bits), of a row x with all numbers finite, before and after:
//   norm         = log_sum_exp(x)                   decode/scores.h
//   p(v)         = x(v) - norm                      one IEEE subtraction
//   likeliest(i) = the token of the i-th greatest p and that p, of equals the lowest token first
//   again(i)     = p(token i of the likeliest of the row before)
// A row with a number that is not finite has NaN for its norm and for all that is made of it, and zeros for tokens.
#pragma once

#include <cstdint>
#include <span>

#include "decode/ctc_frames.h"
#include "device/thread_pool.h"
#include "tensor/matrix.h"

namespace oasr::kernels {

// Results of M rows at `width` tokens each, side by side in one block of memory.
struct CtcFrameRows {
  static constexpr std::int64_t floats(std::int64_t rows, std::int64_t width) { return rows * (3 * width + 2); }
  CtcFrameRows() = default;
  // In memory for floats(rows, width) numbers.
  CtcFrameRows(float* memory, std::int64_t rows, std::int64_t width)
      : likeliest(reinterpret_cast<decode::ScoredToken*>(memory)),
        again(memory + 2 * rows * width),
        blanks(again + rows * width),
        norms(blanks + rows) {}

  decode::ScoredToken* likeliest = nullptr;  // [M, width]
  float* again = nullptr;                    // [M, width]
  float* blanks = nullptr;                   // [M]: p of the blank
  float* norms = nullptr;                    // [M]
};

// Consecutive rows of one utterance.
struct CtcPiece {
  std::int64_t rows = 0;
  // Host memory: the tokens of the frame before the first one, `width` of them; empty: there is none, and the first
  // row's `again` is of token 0.
  std::span<const TokenId> before;
};

struct CtcFramesArgs {
  Matrix logits;  // [M, V]; what is in them afterwards is not promised
  TokenId blank = 0;
  int width = 1;                     // 1 … V
  std::span<const CtcPiece> pieces;  // M rows together
  CtcFrameRows out;                  // where the logits are
};
void ctc_frames(ExecContext& context, const CtcFramesArgs& args);

// The definition, for tests: on the host, and `logits` stay what they are.
void ctc_frames_reference(const CtcFramesArgs& args);

}  // namespace oasr::kernels
