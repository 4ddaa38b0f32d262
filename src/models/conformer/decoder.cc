#include "models/conformer/decoder.h"

#include <algorithm>
#include <cmath>

#include "kernels/rows/op.h"
#include "layers/attend.h"
#include "models/conformer/layer_table.h"
#include "models/conformer/positions.h"

namespace oasr::models::conformer {

void DecoderBuffers::reserve(const Config& config, std::int64_t tokens, std::int64_t frames) {
  const std::int64_t d = config.encoder.output_size;
  x_.reserve(tokens * d);
  normed_.reserve(tokens * d);
  wide_.reserve(std::max({3 * tokens * d, tokens * config.decoder->linear_units, 2 * frames * d}));
}

Result<Decoder::Attention> Decoder::load_attention(const Config& config, const std::string& path,
                                                   const layers::Parameters& parameters,
                                                   const layers::WeightOptions& options) {
  const auto linear = [&](const char* name) {
    return layers::Linear::load(parameters, linear_spec(config, path + name), options);
  };
  auto q = TRY(linear(".linear_q"));
  auto k = TRY(linear(".linear_k"));
  auto v = TRY(linear(".linear_v"));
  auto out = TRY(linear(".linear_out"));
  return Attention{.q = std::move(q), .k = std::move(k), .v = std::move(v), .out = std::move(out), .path = path};
}

Result<Decoder::Block> Decoder::load_block(const Config& config, const std::string& path,
                                           const layers::Parameters& parameters,
                                           const layers::WeightOptions& options) {
  using layers::LayerNorm;
  auto norm1 = TRY(LayerNorm::load(parameters, path + ".norm1"));
  auto self_attn = TRY(load_attention(config, path + ".self_attn", parameters, options));
  auto norm2 = TRY(LayerNorm::load(parameters, path + ".norm2"));
  auto src_attn = TRY(load_attention(config, path + ".src_attn", parameters, options));
  auto norm3 = TRY(LayerNorm::load(parameters, path + ".norm3"));
  auto w_1 = TRY(layers::Linear::load(parameters, linear_spec(config, path + ".feed_forward.w_1"), options));
  auto w_2 = TRY(layers::Linear::load(parameters, linear_spec(config, path + ".feed_forward.w_2"), options));
  return Block{.norm1 = std::move(norm1), .self_attn = std::move(self_attn), .norm2 = std::move(norm2),
               .src_attn = std::move(src_attn), .norm3 = std::move(norm3), .w_1 = std::move(w_1),
               .w_2 = std::move(w_2)};
}

Result<Decoder> Decoder::load(const Config& config, bool left, const layers::Parameters& parameters,
                              const layers::WeightOptions& options) {
  const std::string path = left ? "decoder.left_decoder" : "decoder.right_decoder";
  auto embed = TRY(layers::Embedding::load(parameters, path + ".embed.0", options));
  auto norm = TRY(layers::LayerNorm::load(parameters, path + ".after_norm"));
  auto output = TRY(layers::Linear::load(parameters, linear_spec(config, path + ".output_layer"), options));
  Decoder decoder(config, std::move(embed), std::move(norm), std::move(output));
  const int blocks = left ? config.decoder->num_blocks : config.decoder->r_num_blocks;
  for (int block = 0; block < blocks; ++block) {
    decoder.blocks_.push_back(TRY(load_block(config, decoder_block(left, block), parameters, options)));
  }
  return decoder;
}

void Decoder::encode(ExecContext& context, ConstMatrix encoder_output, int slot, cache::KvPool& cross,
                     DecoderBuffers& buffers) const {
  const std::int64_t frames = encoder_output.rows, d = encoder_output.columns;
  buffers.reserve(config_, 0, frames);
  const Matrix both = buffers.wide_.matrix(2 * frames, d);
  const Matrix k = both.row_range(0, frames), v = both.row_range(frames, frames);
  cross.truncate(slot, 0);
  for (int layer = 0; layer < blocks(); ++layer) {
    const Attention& attention = blocks_[static_cast<std::size_t>(layer)].src_attn;
    attention.k.forward(context, encoder_output, k);
    attention.v.forward(context, encoder_output, v);
    kernels::kv_append(context, cross.at(slot, layer), k.data, k.stride, v.data, v.stride, frames);
  }
}

// Sinusoids of at least the first `count` positions.
ConstMatrix Decoder::positions(std::int64_t count, DecoderBuffers& buffers) const {
  const std::int64_t d = config_.encoder.output_size;
  if (buffers.positions_.floats() < count * d) {
    count = std::max<std::int64_t>(2 * count, 64);
    std::vector<float> table(static_cast<std::size_t>(count * d));
    for (std::int64_t i = 0; i < count; ++i) {
      sinusoid(i, std::span(table).subspan(static_cast<std::size_t>(i * d), static_cast<std::size_t>(d)));
    }
    buffers.positions_.reserve(count * d);
    to_device(buffers.positions_.gpu(), buffers.positions_.matrix(count, d).data, table);
  }
  return buffers.positions_.matrix(buffers.positions_.floats() / d, d);
}

// embed(token) · √D + position; positions go on from what the slots hold.
Matrix Decoder::embed(ExecContext& context, std::span<const TokenPiece> pieces, cache::KvPool& self,
                      DecoderBuffers& buffers) const {
  const std::int64_t d = config_.encoder.output_size;
  buffers.ids_.clear();
  buffers.at_.clear();
  std::int32_t end = 0;
  for (const TokenPiece& piece : pieces) {
    auto at = static_cast<std::int32_t>(self.length(piece.slot));
    for (const TokenId token : piece.tokens) {
      buffers.ids_.push_back(token);
      buffers.at_.push_back(at++);
    }
    end = std::max(end, at);
  }
  const auto count = static_cast<std::int64_t>(buffers.ids_.size());
  buffers.reserve(config_, count, 0);
  const Matrix x = buffers.x_.matrix(count, d);
  kernels::embed_rows(context, {.table = &embed_.table(),
                                .tokens = buffers.ids_,
                                .scale = std::sqrt(static_cast<float>(d)),
                                .positions = buffers.at_,
                                .position_table = positions(end, buffers),
                                .y = x});
  return x;
}

kernels::AttentionArgs Decoder::arguments(const kernels::KvCache& cache, Matrix q, Matrix out, std::int64_t row,
                                          std::int64_t count, bool causal) const {
  const int head_dim = config_.encoder.output_size / config_.decoder->attention_heads;
  return {.q = q.row(row), .ldq = q.stride, .queries = count, .kv = &cache, .causal = causal,
          .scale = 1.0f / std::sqrt(static_cast<float>(head_dim)), .out = out.row(row), .ldo = out.stride};
}

void Decoder::self_attend(ExecContext& context, int layer, std::span<const TokenPiece> pieces,
                          cache::KvPool& self, Matrix x, DecoderBuffers& buffers) const {
  const Block& block = blocks_[static_cast<std::size_t>(layer)];
  const Matrix out = buffers.normed_.matrix(x.rows, x.columns);
  const Matrix qkv = buffers.wide_.matrix(3 * x.rows, x.columns);
  const Matrix q = qkv.row_range(0, x.rows), k = qkv.row_range(x.rows, x.rows), v = qkv.row_range(2 * x.rows, x.rows);
  quant::Activation normed = out;
  block.norm1.forward(context, x, normed);
  block.self_attn.q.forward(context, normed, q);
  block.self_attn.k.forward(context, normed, k);
  block.self_attn.v.forward(context, normed, v);
  buffers.attention_.clear();
  buffers.appends_.clear();
  std::int64_t row = 0;
  for (const TokenPiece& piece : pieces) {
    const auto count = static_cast<std::int64_t>(piece.tokens.size());
    kernels::KvCache& cache = self.at(piece.slot, layer);
    buffers.appends_.push_back(
        {.kv = &cache, .k = k.row(row), .ldk = k.stride, .v = v.row(row), .ldv = v.stride, .count = count});
    buffers.attention_.push_back(arguments(cache, q, out, row, count, true));
    row += count;
  }
  kernels::kv_append(context, buffers.appends_);
  layers::attend(context, block.self_attn.path, x.rows, buffers.attention_);
  block.self_attn.out.forward(context, out, x, x);
}

void Decoder::cross_attend(ExecContext& context, int layer, std::span<const TokenPiece> pieces,
                           cache::KvPool& cross, Matrix x, DecoderBuffers& buffers) const {
  const Block& block = blocks_[static_cast<std::size_t>(layer)];
  const Matrix out = buffers.normed_.matrix(x.rows, x.columns);
  const Matrix q = buffers.wide_.matrix(x.rows, x.columns);
  quant::Activation normed = out;
  block.norm2.forward(context, x, normed);
  block.src_attn.q.forward(context, normed, q);
  buffers.attention_.clear();
  std::int64_t row = 0;
  for (const TokenPiece& piece : pieces) {
    const auto count = static_cast<std::int64_t>(piece.tokens.size());
    const kernels::KvCache& cache = cross.at(piece.utterance, layer);
    // Neighbours of one utterance are queries of one call: its keys and values are read once.
    if (!buffers.attention_.empty() && buffers.attention_.back().kv == &cache) {
      buffers.attention_.back().queries += count;
    } else {
      buffers.attention_.push_back(arguments(cache, q, out, row, count, false));
    }
    row += count;
  }
  layers::attend(context, block.src_attn.path, x.rows, buffers.attention_);
  block.src_attn.out.forward(context, out, x, x);
}

void Decoder::feed_forward(ExecContext& context, const Block& block, Matrix x, DecoderBuffers& buffers) const {
  quant::Activation normed = buffers.normed_.matrix(x.rows, x.columns);
  quant::Activation hidden = buffers.wide_.matrix(x.rows, config_.decoder->linear_units);
  block.norm3.forward(context, x, normed);
  block.w_1.forward(context, normed, hidden);
  block.w_2.forward(context, hidden, x, x);
}

Matrix Decoder::forward(ExecContext& context, std::span<const TokenPiece> pieces, cache::KvPool& self,
                        cache::KvPool& cross, DecoderBuffers& buffers) const {
  const Matrix x = embed(context, pieces, self, buffers);
  for (int layer = 0; layer < blocks(); ++layer) {
    self_attend(context, layer, pieces, self, x, buffers);
    cross_attend(context, layer, pieces, cross, x, buffers);
    feed_forward(context, blocks_[static_cast<std::size_t>(layer)], x, buffers);
  }
  after_norm_.forward(context, x, x);
  return x;
}

void Decoder::list(layers::LayerList& layers) {
  layers.embeddings.push_back(&embed_);
  for (Block& block : blocks_) {
    for (layers::LayerNorm* norm : {&block.norm1, &block.norm2, &block.norm3}) layers.norms.push_back(norm);
    for (Attention* attention : {&block.self_attn, &block.src_attn}) {
      for (layers::Linear* linear : {&attention->q, &attention->k, &attention->v, &attention->out}) {
        layers.linears.push_back(linear);
      }
    }
    for (layers::Linear* linear : {&block.w_1, &block.w_2}) layers.linears.push_back(linear);
  }
  layers.norms.push_back(&after_norm_);
  layers.linears.push_back(&output_layer_);
}

}  // namespace oasr::models::conformer
