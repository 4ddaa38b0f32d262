#include "models/whisper/encoder.h"

#include <algorithm>
#include <cmath>

#include "kernels/rows/op.h"
#include "layers/row_block.h"
#include "layers/attend.h"
#include "models/whisper/layer_table.h"

namespace oasr::models::whisper {

using kernels::Activation;

namespace {

// hidden: rows of a feed-forward block at a time.
std::int64_t wide_floats(const Config& config, int windows, std::int64_t hidden) {
  const std::int64_t frames = windows * std::int64_t{config.max_source_positions}, d = config.d_model;
  return std::max({(2 * frames + 2) * d, frames * 3 * d,
                   hidden * config.encoder_ffn_dim});
}

std::int64_t frames_of(const Config& config, int windows) { return windows * std::int64_t{config.max_source_positions}; }

std::int64_t mel_floats(const Config& config) {
  return (config.window_frames() + 2) * std::int64_t{config.num_mel_bins};
}

std::int64_t stream_floats(const Config& config, int windows) {
  return frames_of(config, windows) * config.d_model;
}

cache::KvPool::Geometry geometry(const Config& config, int windows) {
  return {.slots = windows,
          .layers = 1,
          .heads = config.encoder_attention_heads,
          .head_dim = config.encoder_head_dim(),
          .capacity = config.max_source_positions,
          .storage = DType::f32};
}

}  // namespace

std::size_t EncoderBuffers::bytes_on_gpu(const Config& config, int windows) {
  const std::int64_t wide = wide_floats(config, windows, frames_of(config, windows));
  const std::int64_t floats = wide + mel_floats(config) + 2 * stream_floats(config, windows);
  return static_cast<std::size_t>(floats) * sizeof(float) + cache::KvPool::bytes(geometry(config, windows));
}

EncoderBuffers::EncoderBuffers(const Config& config, int windows, Gpu* gpu)
    : windows(windows),
      wide(wide_floats(config, windows, layers::feed_forward_rows(frames_of(config, windows), gpu)), gpu),
      keys_values(geometry(config, windows), gpu),
      mel_memory_(mel_floats(config), gpu),
      x_memory_(stream_floats(config, windows), gpu),
      normed_memory_(stream_floats(config, windows), gpu) {
  const std::int64_t frames = frames_of(config, windows);
  mel = mel_memory_.matrix(config.window_frames() + 2, config.num_mel_bins);
  x = x_memory_.matrix(frames, config.d_model);
  normed = normed_memory_.matrix(frames, config.d_model);
  appends.reserve(static_cast<std::size_t>(windows));
  attention.reserve(static_cast<std::size_t>(windows));
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

// The two convolutions of one window; x [T, D].
void Encoder::embed(ExecContext& context, const MelWindow& window, EncoderBuffers& buffers, Matrix x) const {
  const std::int64_t frames = config_.window_frames(), d = config_.d_model;
  CHECK(static_cast<std::int64_t>(window.mel.size()) == frames * config_.num_mel_bins,
        "a window is [mels, " + std::to_string(frames) + "]");
  const auto tell_rows = [&](std::int64_t rows) {
    if (context.observer != nullptr) context.observer->audio_rows(rows);
  };
  kernels::transpose_in(context, window.mel, buffers.mel.row_range(1, frames));
  tell_rows(window.audio_frames);
  const Matrix hidden = buffers.wide.matrix(frames + 2, d);
  conv1_.forward(context, buffers.mel, {}, hidden.row_range(1, frames));
  conv2_.forward(context, hidden, ConstMatrix{positions_.data(), x.rows, d, d}, x);
  tell_rows((window.audio_frames + 1) / 2);
}

void Encoder::attend(ExecContext& context, const Block& block, EncoderBuffers& buffers, Matrix x) const {
  const std::int64_t d = config_.d_model, frames = config_.max_source_positions;
  const Matrix qkv = buffers.wide.matrix(x.rows, 3 * d), out = buffers.normed.row_range(0, x.rows);
  quant::Activation normed = out;
  block.self_attn_layer_norm.forward(context, x, normed);
  block.qkv_proj.forward(context, normed, qkv);
  buffers.appends.clear();
  buffers.attention.clear();
  for (std::int64_t first = 0; first < x.rows; first += frames) {
    const int slot = static_cast<int>(first / frames);
    buffers.keys_values.truncate(slot, 0);
    kernels::KvCache& cache = buffers.keys_values.at(slot, 0);
    const float* q = qkv.row(first);
    buffers.appends.push_back(
        {.kv = &cache, .k = q + d, .ldk = qkv.stride, .v = q + 2 * d, .ldv = qkv.stride, .count = frames});
    buffers.attention.push_back({.q = q,
                                 .ldq = qkv.stride,
                                 .queries = frames,
                                 .kv = &cache,
                                 .causal = false,
                                 .scale = 1.0f / std::sqrt(static_cast<float>(config_.encoder_head_dim())),
                                 .out = out.row(first),
                                 .ldo = out.stride,
                                 .weights = nullptr,
                                 .mixed = true});
  }
  kernels::kv_append(context, buffers.appends);
  layers::attend(context, block.self_attn, x.rows, buffers.attention);
  block.out_proj.forward(context, out, x, x);
}

void Encoder::feed_forward(ExecContext& context, const Block& block, EncoderBuffers& buffers, Matrix all) const {
  const std::int64_t rows = layers::feed_forward_rows(all.rows, context.gpu);
  for (std::int64_t first = 0; first < all.rows; first += rows) {
    const std::int64_t count = std::min(rows, all.rows - first);
    const Matrix x = all.row_range(first, count);
    quant::Activation normed = buffers.normed.row_range(first, count);
    quant::Activation hidden = buffers.wide.matrix(count, config_.encoder_ffn_dim);
    block.final_layer_norm.forward(context, x, normed);
    block.fc1.forward(context, normed, hidden);
    block.fc2.forward(context, hidden, x, x);
  }
}

Matrix Encoder::forward(ExecContext& context, std::span<const MelWindow> windows, EncoderBuffers& buffers) const {
  CHECK(windows.size() <= static_cast<std::size_t>(buffers.windows), "more windows than there is memory for");
  const std::int64_t frames = config_.max_source_positions, rows = static_cast<std::int64_t>(windows.size()) * frames;
  const Matrix x = buffers.x.row_range(0, rows), output = buffers.normed.row_range(0, rows);
  for (std::size_t i = 0; i < windows.size(); ++i) {
    embed(context, windows[i], buffers, x.row_range(static_cast<std::int64_t>(i) * frames, frames));
  }
  for (const Block& block : blocks_) {
    attend(context, block, buffers, x);
    feed_forward(context, block, buffers, x);
  }
  layer_norm_.forward(context, x, output);
  return output;
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
