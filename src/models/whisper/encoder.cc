#include "models/whisper/encoder.h"

#include <algorithm>
#include <cmath>

#include "kernels/attention/op.h"
#include "kernels/rows/op.h"
#include "layers/row_block.h"
#include "layers/watched.h"
#include "models/whisper/layer_table.h"

namespace oasr::models::whisper {

using kernels::Activation;

namespace {

std::int64_t wide_floats(const Config& config, const Gpu* gpu) {
  const std::int64_t frames = config.max_source_positions, d = config.d_model;
  return std::max({(2 * frames + 2) * d, frames * 3 * d,
                   layers::feed_forward_rows(frames, gpu) * config.encoder_ffn_dim});
}

}  // namespace

EncoderBuffers::EncoderBuffers(const Config& config, Gpu* gpu)
    : wide(wide_floats(config, gpu), gpu),
      keys_values({.slots = 1,
                   .layers = 1,
                   .heads = config.encoder_attention_heads,
                   .head_dim = config.encoder_head_dim(),
                   .capacity = config.max_source_positions,
                   .storage = DType::f32},
                  gpu),
      mel_memory_((config.window_frames() + 2) * std::int64_t{config.num_mel_bins}, gpu),
      x_memory_(config.max_source_positions * std::int64_t{config.d_model}, gpu),
      normed_memory_(config.max_source_positions * std::int64_t{config.d_model}, gpu) {
  mel = mel_memory_.matrix(config.window_frames() + 2, config.num_mel_bins);
  x = x_memory_.matrix(config.max_source_positions, config.d_model);
  normed = normed_memory_.matrix(config.max_source_positions, config.d_model);
}

Result<Encoder::Block> Encoder::load_block(const std::string& path,
                                           const layers::Parameters& parameters,
                                           const layers::WeightOptions& options) {
  using layers::LayerNorm;
  const auto linear = [&](std::string_view name) {
    return layers::Linear::load(parameters, linear_spec(path, name), options);
  };
  auto self_attn_layer_norm = TRY(LayerNorm::load(parameters, path + ".self_attn_layer_norm"));
  auto qkv_proj = TRY(linear("self_attn.qkv_proj"));
  auto out_proj = TRY(linear("self_attn.out_proj"));
  auto final_layer_norm = TRY(LayerNorm::load(parameters, path + ".final_layer_norm"));
  auto fc1 = TRY(linear("fc1"));
  auto fc2 = TRY(linear("fc2"));
  return Block{.self_attn_layer_norm = std::move(self_attn_layer_norm),
               .qkv_proj = std::move(qkv_proj),
               .out_proj = std::move(out_proj),
               .self_attn = path + ".self_attn",
               .final_layer_norm = std::move(final_layer_norm),
               .fc1 = std::move(fc1),
               .fc2 = std::move(fc2)};
}

Result<Encoder> Encoder::load(const Config& config, const layers::Parameters& parameters,
                              const layers::WeightOptions& options) {
  using layers::Conv1d;
  const std::string path = "model.encoder.";
  const auto convolution = [&](const char* name, std::int64_t stride) {
    return Conv1d::load(parameters,
                        {.path = path + name, .stride = stride, .activation = Activation::gelu}, options);
  };
  auto conv1 = TRY(convolution("conv1", 1));
  auto conv2 = TRY(convolution("conv2", 2));
  auto norm = TRY(layers::LayerNorm::load(parameters, path + "layer_norm"));
  Encoder encoder(config, std::move(conv1), std::move(conv2), std::move(norm));
  encoder.positions_ = TRY(layers::read_floats(parameters, path + "embed_positions.weight"));
  for (int layer = 0; layer < config.encoder_layers; ++layer) {
    encoder.blocks_.push_back(
        TRY(load_block(path + "layers." + std::to_string(layer), parameters, options)));
  }
  return encoder;
}

void Encoder::attend(ExecContext& context, const Block& block, EncoderBuffers& buffers) const {
  const std::int64_t d = config_.d_model, frames = buffers.x.rows;
  const Matrix qkv = buffers.wide.matrix(frames, 3 * d);
  quant::Activation normed = buffers.normed;
  block.self_attn_layer_norm.forward(context, buffers.x, normed);
  block.qkv_proj.forward(context, normed, qkv);
  buffers.keys_values.truncate(0, 0);
  kernels::KvCache& cache = buffers.keys_values.at(0, 0);
  kernels::kv_append(context, cache, qkv.data + d, qkv.stride, qkv.data + 2 * d, qkv.stride, frames);
  const kernels::AttentionArgs args{
      .q = qkv.data,
      .ldq = qkv.stride,
      .queries = frames,
      .kv = &cache,
      .causal = false,
      .scale = 1.0f / std::sqrt(static_cast<float>(config_.encoder_head_dim())),
      .out = buffers.normed.data,
      .ldo = buffers.normed.stride,
      .weights = nullptr,
      .mixed = true};
  layers::watched(context, block.self_attn, frames, [&] {
    kernels::attention(context, {&args, 1});
    return kernels::NotFinite{};
  });
  block.out_proj.forward(context, buffers.normed, buffers.x, buffers.x);
}

void Encoder::feed_forward(ExecContext& context, const Block& block,
                           EncoderBuffers& buffers) const {
  const std::int64_t rows = layers::feed_forward_rows(buffers.x.rows, context.gpu);
  for (std::int64_t first = 0; first < buffers.x.rows; first += rows) {
    const std::int64_t count = std::min(rows, buffers.x.rows - first);
    const Matrix x = buffers.x.row_range(first, count);
    quant::Activation normed = buffers.normed.row_range(first, count);
    quant::Activation hidden = buffers.wide.matrix(count, config_.encoder_ffn_dim);
    block.final_layer_norm.forward(context, x, normed);
    block.fc1.forward(context, normed, hidden);
    block.fc2.forward(context, hidden, x, x);
  }
}

Matrix Encoder::forward(ExecContext& context, std::span<const float> mel, std::int64_t audio_frames,
                        EncoderBuffers& buffers) const {
  const std::int64_t frames = config_.window_frames(), d = config_.d_model;
  CHECK(static_cast<std::int64_t>(mel.size()) == frames * config_.num_mel_bins,
        "a window is [mels, " + std::to_string(frames) + "]");
  const auto tell_rows = [&](std::int64_t rows) {
    if (context.observer != nullptr) context.observer->audio_rows(rows);
  };
  kernels::transpose_in(context, mel, buffers.mel.row_range(1, frames));
  tell_rows(audio_frames);
  const Matrix hidden = buffers.wide.matrix(frames + 2, d);
  conv1_.forward(context, buffers.mel, {}, hidden.row_range(1, frames));
  const ConstMatrix positions{positions_.data(), buffers.x.rows, d, d};
  conv2_.forward(context, hidden, positions, buffers.x);
  tell_rows((audio_frames + 1) / 2);
  for (const Block& block : blocks_) {
    attend(context, block, buffers);
    feed_forward(context, block, buffers);
  }
  layer_norm_.forward(context, buffers.x, buffers.normed);
  return buffers.normed;
}

void Encoder::list(layers::LayerList& layers) {
  layers.convolutions.push_back(&conv1_);
  layers.convolutions.push_back(&conv2_);
  layers.tables.push_back({.name = "model.encoder.embed_positions.weight",
                           .shape = {config_.max_source_positions, config_.d_model},
                           .values = &positions_});
  for (Block& block : blocks_) {
    layers.norms.push_back(&block.self_attn_layer_norm);
    layers.norms.push_back(&block.final_layer_norm);
    for (layers::Linear* linear : {&block.qkv_proj, &block.out_proj, &block.fc1, &block.fc2}) {
      layers.linears.push_back(linear);
    }
  }
  layers.norms.push_back(&layer_norm_);
}

}  // namespace oasr::models::whisper
