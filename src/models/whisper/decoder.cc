#include "models/whisper/decoder.h"

#include <algorithm>
#include <cmath>

#include "kernels/rows/op.h"
#include "layers/attend.h"
#include "models/whisper/layer_table.h"

namespace oasr::models::whisper {

std::size_t DecoderBuffers::bytes(const Config& config, std::int64_t tokens, std::int64_t rows) {
  const std::int64_t wide = std::max(3 * config.d_model, config.decoder_ffn_dim);
  return static_cast<std::size_t>(tokens * (2 * config.d_model + wide) + rows * config.d_model) * sizeof(float);
}

DecoderBuffers::DecoderBuffers(const Config& config, std::int64_t tokens, std::int64_t rows, Gpu* gpu)
    : tokens(tokens),
      x(tokens * config.d_model, gpu),
      normed(tokens * config.d_model, gpu),
      wide(tokens * std::max(3 * config.d_model, config.decoder_ffn_dim), gpu),
      last(rows * config.d_model, gpu) {
  attention.reserve(static_cast<std::size_t>(tokens));
  appends.reserve(static_cast<std::size_t>(tokens));
  ids.reserve(static_cast<std::size_t>(tokens));
  positions.reserve(static_cast<std::size_t>(tokens));
}

AlignmentWeights::AlignmentWeights(std::span<const AlignmentHead> heads, int heads_per_layer,
                                   std::int64_t tokens, std::int64_t frames,
                                   std::int64_t piece_tokens, Gpu* gpu)
    : heads_(heads),
      tokens_(tokens),
      frames_(frames),
      layer_(heads_per_layer * piece_tokens * frames, gpu),
      chosen_(static_cast<std::int64_t>(heads.size()) * tokens * frames, gpu) {}

float* AlignmentWeights::layer_buffer(int layer) {
  const bool wanted = std::ranges::any_of(heads_, [&](const auto& head) { return head.first == layer; });
  return wanted ? layer_.matrix(1, layer_.floats()).data : nullptr;
}

void AlignmentWeights::collect(ExecContext& context, int layer, std::int64_t count) {
  const auto heads = static_cast<std::int64_t>(heads_.size());
  for (std::int64_t i = 0; i < heads; ++i) {
    const auto [of_layer, head] = heads_[static_cast<std::size_t>(i)];
    if (of_layer != layer) continue;
    const Matrix all = layer_.matrix((head + 1) * count, frames_);
    const Matrix chosen = chosen_.matrix(heads * tokens_, frames_);
    kernels::shift_scale_rows(context, {.x = all.row_range(head * count, count),
                                        .y = chosen.row_range(i * tokens_ + first_token_, count)});
  }
}

std::vector<float> AlignmentWeights::take(ExecContext& context) {
  const Matrix chosen = chosen_.matrix(static_cast<std::int64_t>(heads_.size()) * tokens_, frames_);
  std::vector<float> weights(static_cast<std::size_t>(chosen.rows * chosen.columns));
  kernels::to_host(context, chosen, weights);
  return weights;
}

Result<Decoder::Block> Decoder::load_block(const std::string& path,
                                           const layers::Parameters& parameters,
                                           const layers::WeightOptions& options) {
  using layers::LayerNorm;
  const auto linear = [&](std::string_view name) {
    return layers::Linear::load(parameters, linear_spec(path, name), options);
  };
  auto self_attn_layer_norm = TRY(LayerNorm::load(parameters, path + ".self_attn_layer_norm"));
  auto qkv_proj = TRY(linear("self_attn.qkv_proj"));
  auto out_proj = TRY(linear("self_attn.out_proj"));
  auto encoder_attn_layer_norm = TRY(LayerNorm::load(parameters, path + ".encoder_attn_layer_norm"));
  auto cross_q_proj = TRY(linear("encoder_attn.q_proj"));
  auto cross_kv_proj = TRY(linear("encoder_attn.kv_proj"));
  auto cross_out_proj = TRY(linear("encoder_attn.out_proj"));
  auto final_layer_norm = TRY(LayerNorm::load(parameters, path + ".final_layer_norm"));
  auto fc1 = TRY(linear("fc1"));
  auto fc2 = TRY(linear("fc2"));
  return Block{.self_attn_layer_norm = std::move(self_attn_layer_norm),
               .qkv_proj = std::move(qkv_proj),
               .out_proj = std::move(out_proj),
               .self_attn = path + ".self_attn",
               .encoder_attn = path + ".encoder_attn",
               .encoder_attn_layer_norm = std::move(encoder_attn_layer_norm),
               .cross_q_proj = std::move(cross_q_proj),
               .cross_kv_proj = std::move(cross_kv_proj),
               .cross_out_proj = std::move(cross_out_proj),
               .final_layer_norm = std::move(final_layer_norm),
               .fc1 = std::move(fc1),
               .fc2 = std::move(fc2)};
}

Result<Decoder> Decoder::load(const Config& config, const layers::Parameters& parameters,
                              const layers::WeightOptions& options) {
  const std::string path = "model.decoder.";
  auto embedding = TRY(layers::Embedding::load(parameters, path + "embed_tokens", options));
  auto norm = TRY(layers::LayerNorm::load(parameters, path + "layer_norm"));
  auto head = config.tie_word_embeddings
                  ? embedding.tied_head("proj_out")
                  : TRY(layers::Linear::load(parameters, {.path = "proj_out", .parts = {}}, options));
  Decoder decoder(config, std::move(embedding), std::move(norm), std::move(head));
  decoder.positions_ = TRY(layers::read_floats(parameters, path + "embed_positions.weight"));
  for (int layer = 0; layer < config.decoder_layers; ++layer) {
    decoder.blocks_.push_back(
        TRY(load_block(path + "layers." + std::to_string(layer), parameters, options)));
  }
  return decoder;
}

void Decoder::encode_windows(ExecContext& context, ConstMatrix encoder_output, std::span<const int> windows,
                             cache::KvPool& cross, EncoderBuffers& buffers) const {
  const std::int64_t d = config_.d_model, frames = config_.max_source_positions;
  CHECK(encoder_output.rows == static_cast<std::int64_t>(windows.size()) * frames, "frames of every window");
  const Matrix kv = buffers.wide.matrix(encoder_output.rows, 2 * d);
  for (const int window : windows) cross.truncate(window, 0);
  for (int layer = 0; layer < config_.decoder_layers; ++layer) {
    blocks_[static_cast<std::size_t>(layer)].cross_kv_proj.forward(context, encoder_output, kv);
    buffers.appends.clear();
    for (std::size_t i = 0; i < windows.size(); ++i) {
      const float* keys = kv.row(static_cast<std::int64_t>(i) * frames);
      buffers.appends.push_back({.kv = &cross.at(windows[i], layer),
                                 .k = keys,
                                 .ldk = kv.stride,
                                 .v = keys + d,
                                 .ldv = kv.stride,
                                 .count = frames});
    }
    kernels::kv_append(context, buffers.appends);
  }
}

// Token and position vectors of all pieces; positions go on from what the slots hold.
Matrix Decoder::embed(ExecContext& context, std::span<const Piece> pieces, cache::KvPool& self,
                      DecoderBuffers& buffers) const {
  const std::int64_t d = config_.d_model;
  buffers.ids.clear();
  buffers.positions.clear();
  for (const Piece& piece : pieces) {
    auto position = static_cast<std::int32_t>(self.length(piece.slot));
    CHECK(position + static_cast<std::int64_t>(piece.tokens.size()) <= config_.max_target_positions,
          "more tokens than the decoder has positions");
    for (const TokenId token : piece.tokens) {
      buffers.ids.push_back(token);
      buffers.positions.push_back(position++);
    }
  }
  const auto count = static_cast<std::int64_t>(buffers.ids.size());
  CHECK(count <= buffers.tokens, "more tokens than the buffers were made for");
  const Matrix x = buffers.x.matrix(count, d);
  kernels::embed_rows(context, {.table = &embed_tokens_.table(),
                                .tokens = buffers.ids,
                                .positions = buffers.positions,
                                .position_table = {positions_.data(), config_.max_target_positions, d, d},
                                .y = x});
  return x;
}

void Decoder::self_attend(ExecContext& context, int layer, std::span<const Piece> pieces,
                          cache::KvPool& self, Matrix x, DecoderBuffers& buffers) const {
  const Block& block = blocks_[static_cast<std::size_t>(layer)];
  const std::int64_t d = config_.d_model;
  const Matrix normed = buffers.normed.matrix(x.rows, d);
  const Matrix qkv = buffers.wide.matrix(x.rows, 3 * d);
  quant::Activation input = normed;
  block.self_attn_layer_norm.forward(context, x, input);
  block.qkv_proj.forward(context, input, qkv);
  buffers.attention.clear();
  buffers.appends.clear();
  std::int64_t row = 0;
  for (const Piece& piece : pieces) {
    const auto count = static_cast<std::int64_t>(piece.tokens.size());
    kernels::KvCache& cache = self.at(piece.slot, layer);
    float* q = qkv.row(row);
    buffers.appends.push_back(
        {.kv = &cache, .k = q + d, .ldk = qkv.stride, .v = q + 2 * d, .ldv = qkv.stride, .count = count});
    buffers.attention.push_back({.q = q,
                                 .ldq = qkv.stride,
                                 .queries = count,
                                 .kv = &cache,
                                 .causal = true,
                                 .scale = 1.0f / std::sqrt(static_cast<float>(config_.decoder_head_dim())),
                                 .out = normed.row(row),
                                 .ldo = normed.stride,
                                 .weights = nullptr});
    row += count;
  }
  kernels::kv_append(context, buffers.appends);
  layers::attend(context, block.self_attn, x.rows, buffers.attention);
  block.out_proj.forward(context, normed, x, x);
}

void Decoder::cross_attend(ExecContext& context, int layer, std::span<const Piece> pieces,
                           cache::KvPool& cross, Matrix x, DecoderBuffers& buffers,
                           AlignmentWeights* alignment) const {
  const Block& block = blocks_[static_cast<std::size_t>(layer)];
  const Matrix normed = buffers.normed.matrix(x.rows, config_.d_model);
  const Matrix q = buffers.wide.matrix(x.rows, config_.d_model);
  quant::Activation input = normed;
  block.encoder_attn_layer_norm.forward(context, x, input);
  block.cross_q_proj.forward(context, input, q);
  buffers.attention.clear();
  std::int64_t row = 0;
  for (const Piece& piece : pieces) {
    const auto count = static_cast<std::int64_t>(piece.tokens.size());
    const kernels::KvCache& cache = cross.at(piece.window, layer);
    // Neighbours of one window are queries of one call: its keys and values are read once.
    if (!buffers.attention.empty() && buffers.attention.back().kv == &cache) {
      buffers.attention.back().queries += count;
    } else {
      buffers.attention.push_back({.q = q.row(row),
                                   .ldq = q.stride,
                                   .queries = count,
                                   .kv = &cache,
                                   .causal = false,
                                   .scale = 1.0f / std::sqrt(static_cast<float>(config_.decoder_head_dim())),
                                   .out = normed.row(row),
                                   .ldo = normed.stride,
                                   .weights = alignment ? alignment->layer_buffer(layer) : nullptr});
    }
    row += count;
  }
  layers::attend(context, block.encoder_attn, x.rows, buffers.attention);
  if (alignment) alignment->collect(context, layer, x.rows);
  block.cross_out_proj.forward(context, normed, x, x);
}

void Decoder::feed_forward(ExecContext& context, const Block& block, Matrix x,
                           DecoderBuffers& buffers) const {
  quant::Activation normed = buffers.normed.matrix(x.rows, config_.d_model);
  quant::Activation hidden = buffers.wide.matrix(x.rows, config_.decoder_ffn_dim);
  block.final_layer_norm.forward(context, x, normed);
  block.fc1.forward(context, normed, hidden);
  block.fc2.forward(context, hidden, x, x);
}

Matrix Decoder::forward(ExecContext& context, std::span<const Piece> pieces, cache::KvPool& self,
                        cache::KvPool& cross, DecoderBuffers& buffers,
                        AlignmentWeights* alignment) const {
  CHECK(alignment == nullptr || pieces.size() == 1, "alignment is of one sequence");
  const Matrix x = embed(context, pieces, self, buffers);
  for (int layer = 0; layer < config_.decoder_layers; ++layer) {
    self_attend(context, layer, pieces, self, x, buffers);
    cross_attend(context, layer, pieces, cross, x, buffers, alignment);
    feed_forward(context, blocks_[static_cast<std::size_t>(layer)], x, buffers);
  }
  if (alignment) alignment->advance(x.rows);
  return x;
}

void Decoder::logits(ExecContext& context, Matrix x, Matrix out) const {
  layer_norm_.forward(context, x, x);
  proj_out_.forward(context, x, out);
}

void Decoder::list(layers::LayerList& layers) {
  layers.embeddings.push_back(&embed_tokens_);
  layers.tables.push_back({.name = "model.decoder.embed_positions.weight",
                           .shape = {config_.max_target_positions, config_.d_model},
                           .values = &positions_});
  for (Block& block : blocks_) {
    for (layers::LayerNorm* norm : {&block.self_attn_layer_norm, &block.encoder_attn_layer_norm,
                                    &block.final_layer_norm}) {
      layers.norms.push_back(norm);
    }
    for (layers::Linear* linear :
         {&block.qkv_proj, &block.out_proj, &block.cross_q_proj, &block.cross_kv_proj,
          &block.cross_out_proj, &block.fc1, &block.fc2}) {
      layers.linears.push_back(linear);
    }
  }
  layers.norms.push_back(&layer_norm_);
  if (!config_.tie_word_embeddings) layers.linears.push_back(&proj_out_);
}

}  // namespace oasr::models::whisper
