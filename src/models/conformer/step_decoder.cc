#include "models/conformer/step_decoder.h"

#include <algorithm>

#include "kernels/rows/op.h"

namespace oasr::models::conformer {
namespace {

cache::KvPool::Geometry geometry(const Network& network, int slots, std::int64_t capacity) {
  const int heads = network.config.decoder->attention_heads;
  return {.slots = slots,
          .layers = network.left->blocks(),
          .heads = heads,
          .head_dim = network.config.encoder.output_size / heads,
          .capacity = capacity,
          .storage = DType::f32};
}

}  // namespace

StepDecoder::StepDecoder(const Network& network, ExecContext context, ConstMatrix encoder_output, int rows,
                         int tokens)
    : network_(network),
      context_(context),
      tokens_(tokens),
      self_(geometry(network, rows, tokens), context.gpu),
      cross_(geometry(network, 1, encoder_output.rows), context.gpu),
      table_(rows),
      buffers_(context.gpu),
      logits_(rows > 0 ? 2 * rows * std::int64_t{network.config.output_dim} : 0, context.gpu),
      room_(context.gpu) {
  for (int row = 0; row < rows; ++row) table_.open(0);
  network_.left->encode(context_, encoder_output, 0, cross_, buffers_);
}

void StepDecoder::score(std::span<const Input> inputs, std::span<float> logits) {
  std::vector<TokenPiece> pieces;
  for (const Input& input : inputs) {
    pieces.push_back({.slot = table_.slot(input.row), .utterance = 0, .tokens = input.tokens});
  }
  as_graph(context_.gpu, Starts::early, [&] { forward(inputs, pieces, logits); }, "decoder step");
}

void StepDecoder::forward(std::span<const Input> inputs, std::span<const TokenPiece> pieces, std::span<float> logits) {
  const std::int64_t vocabulary = vocabulary_size();
  const Matrix hidden = network_.left->forward(context_, pieces, self_, cross_, buffers_);
  const Matrix all{logits.data(), static_cast<std::int64_t>(logits.size()) / vocabulary, vocabulary, vocabulary};
  const Matrix out = context_.gpu == nullptr ? all : logits_.matrix(all.rows, vocabulary);
  std::int64_t row = 0, at = 0;
  for (const Input& input : inputs) {
    const auto count = static_cast<std::int64_t>(input.tokens.size());
    const auto write = [&](std::int64_t place) {
      network_.left->logits(context_, hidden.row_range(row + place, 1), out.row_range(at++, 1));
    };
    if (input.probe >= 0) write(input.probe);
    write(count - 1);
    row += count;
  }
  if (context_.gpu == nullptr) return;
  kernels::to_host(context_, out, logits);
  if (context_.observer != nullptr) context_.gpu->tell(*context_.observer);
}

void StepDecoder::reorder(std::span<const decode::RowId> rows, std::span<const decode::RowId> parents) {
  self_.copy(context_, table_.reorder(rows, parents));
}

}  // namespace oasr::models::conformer
