// The small interface through which searches see an autoregressive decoder.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "text/tokenizer.h"

namespace oasr::decode {

// A hypothesis' place in the decoder: its key/value cache. Small, reused.
using RowId = int;

// Scores next tokens for many rows at once. Rows are independent: a row's scores are the same bits
// whatever other rows are in the call. Not thread-safe.
class StepScorer {
 public:
  virtual ~StepScorer() = default;

  virtual int vocabulary_size() const = 0;
  virtual int context_size() const = 0;  // positions a row can hold

  struct Input {
    RowId row = 0;
    std::span<const TokenId> tokens;  // appended to the row, one or more
    // A place in `tokens` after which the logits are wanted too; none below 0. One pass over the
    // weights then gives both.
    int probe = -1;
  };

  // Appends every input's tokens to its row and writes logits [n, vocabulary_size()], not
  // normalised, input by input: those of its probe, if it has one, then those after its last
  // token. A row is in at most one input.
  virtual void score(std::span<const Input> inputs, std::span<float> logits) = 0;
  // Memory for so many logits where score() writes best, uninitialised; borrowed until the next call.
  virtual std::span<float> room(std::size_t logits) = 0;

  // Positions that the row holds.
  virtual int length(RowId row) const = 0;
  // Forgets positions from `length` on.
  virtual void truncate(RowId row, int length) = 0;
  // rows[i] becomes what parents[i] was (beam search); both refer to open rows of one window.
  virtual void reorder(std::span<const RowId> rows, std::span<const RowId> parents) = 0;
};

}  // namespace oasr::decode
