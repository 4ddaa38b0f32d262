// The left-to-right decoder of one utterance, step by step: StepScorer.
#pragma once

#include <vector>

#include "cache/row_table.h"
#include "decode/step_scorer.h"
#include "models/conformer/network.h"

namespace oasr::models::conformer {

// `rows` rows of at most `tokens` tokens, all open from the start: RowIds 0 … rows - 1.
class StepDecoder final : public decode::StepScorer {
 public:
  StepDecoder(const Network& network, ExecContext context, ConstMatrix encoder_output, int rows, int tokens);

  int vocabulary_size() const override { return network_.config.output_dim; }
  int context_size() const override { return tokens_; }
  void score(std::span<const Input> inputs, std::span<float> logits) override;
  std::span<float> room(std::size_t logits) override { return room_.room(logits); }
  int length(decode::RowId row) const override { return static_cast<int>(self_.length(table_.slot(row))); }
  void truncate(decode::RowId row, int length) override { self_.truncate(table_.slot(row), length); }
  void reorder(std::span<const decode::RowId> rows, std::span<const decode::RowId> parents) override;

 private:
  void forward(std::span<const Input> inputs, std::span<const TokenPiece> pieces, std::span<float> logits);

  const Network& network_;
  ExecContext context_;
  int tokens_;
  cache::KvPool self_, cross_;
  cache::RowTable table_;
  DecoderBuffers buffers_;
  layers::Buffer logits_;
  HostFloats room_;
};

}  // namespace oasr::models::conformer
