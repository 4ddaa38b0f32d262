#include "models/conformer/encoder.h"

#include <algorithm>
#include <cmath>

#include "kernels/rows/op.h"
#include "layers/row_block.h"
#include "layers/attend.h"
#include "models/conformer/layer_table.h"

namespace oasr::models::conformer {

using kernels::KvCache;

EncoderCache::EncoderCache(const Config& config, const ChunkMask& mask, bool whole)
    : mask_(mask), whole_(whole), layers_(whole ? 1 : static_cast<std::size_t>(config.encoder.num_blocks)) {
  for (Layer& layer : layers_) {
    layer.kv = {.heads = config.encoder.attention_heads, .head_dim = config.encoder.head_dim(), .capacity = 0,
                .length = 0, .storage = DType::f32, .data = nullptr};
  }
}

std::size_t EncoderCache::bytes() const {
  std::size_t bytes = 0;
  for (const Layer& layer : layers_) bytes += layer.memory.size() + static_cast<std::size_t>(layer.tail.floats()) * sizeof(float);
  return bytes;
}

void EncoderBuffers::reserve(const Config& config, std::int64_t rows, std::int64_t pieces) {
  const std::int64_t d = config.encoder.output_size;
  const std::int64_t padded = rows + pieces * (config.encoder.cnn_module_kernel - 1);
  zero_gates_.resize(static_cast<std::size_t>(config.encoder.num_blocks));
  normed_.reserve(rows * d);
  wide_.reserve(std::max({3 * rows * d, layers::feed_forward_rows(rows, wide_.gpu()) * config.encoder.linear_units,
                          3 * rows * d + d + 2 * padded * d}));
}

Result<Encoder::Block> Encoder::load_block(const Config& config, const std::string& path,
                                           const layers::Parameters& parameters,
                                           const layers::WeightOptions& options) {
  const auto norm = [&](const char* name) { return layers::LayerNorm::load(parameters, path + name); };
  const auto linear = [&](const char* name) {
    return layers::Linear::load(parameters, linear_spec(config, path + name), options);
  };
  auto norm_ff_macaron = TRY(norm(".norm_ff_macaron"));
  auto macaron_w_1 = TRY(linear(".feed_forward_macaron.w_1"));
  auto macaron_w_2 = TRY(linear(".feed_forward_macaron.w_2"));
  auto norm_mha = TRY(norm(".norm_mha"));
  auto linear_qkv = TRY(linear(".self_attn.linear_qkv"));
  auto linear_pos = TRY(linear(".self_attn.linear_pos"));
  auto linear_out = TRY(linear(".self_attn.linear_out"));
  auto pos_bias_u = TRY(layers::read_floats(parameters, path + ".self_attn.pos_bias_u"));
  auto pos_bias_v = TRY(layers::read_floats(parameters, path + ".self_attn.pos_bias_v"));
  auto norm_conv = TRY(norm(".norm_conv"));
  auto conv_module = TRY(ConvModule::load(config, path + ".conv_module", parameters, options));
  auto norm_ff = TRY(norm(".norm_ff"));
  auto w_1 = TRY(linear(".feed_forward.w_1"));
  auto w_2 = TRY(linear(".feed_forward.w_2"));
  auto norm_final = TRY(norm(".norm_final"));
  return Block{.norm_ff_macaron = std::move(norm_ff_macaron),
               .macaron_w_1 = std::move(macaron_w_1),
               .macaron_w_2 = std::move(macaron_w_2),
               .norm_mha = std::move(norm_mha),
               .linear_qkv = std::move(linear_qkv),
               .linear_pos = std::move(linear_pos),
               .linear_out = std::move(linear_out),
               .pos_bias_u = std::move(pos_bias_u),
               .pos_bias_v = std::move(pos_bias_v),
               .self_attn = path + ".self_attn",
               .norm_conv = std::move(norm_conv),
               .conv_module = std::move(conv_module),
               .norm_ff = std::move(norm_ff),
               .w_1 = std::move(w_1),
               .w_2 = std::move(w_2),
               .norm_final = std::move(norm_final)};
}

Result<Encoder> Encoder::load(const Config& config, const layers::Parameters& parameters,
                              const layers::WeightOptions& options) {
  auto after_norm = TRY(layers::LayerNorm::load(parameters, "encoder.after_norm"));
  Encoder encoder(config, std::move(after_norm));
  for (int block = 0; block < config.encoder.num_blocks; ++block) {
    encoder.blocks_.push_back(TRY(load_block(config, encoder_block(block), parameters, options)));
  }
  return encoder;
}

PositionTable Encoder::make_positions() const {
  std::vector<const layers::Linear*> products;
  for (const Block& block : blocks_) products.push_back(&block.linear_pos);
  return {std::move(products), config_.encoder.attention_heads, config_.encoder.head_dim()};
}

// x += ½ · w_2(w_1(norm(x))).
void Encoder::feed_forward(ExecContext& context, const layers::LayerNorm& norm, const layers::Linear& w_1,
                           const layers::Linear& w_2, Matrix x, EncoderBuffers& buffers) const {
  const std::int64_t most = layers::feed_forward_rows(x.rows, context.gpu);
  for (std::int64_t first = 0; first < x.rows; first += most) {
    const std::int64_t count = std::min(most, x.rows - first);
    const Matrix rows = x.row_range(first, count);
    quant::Activation normed = buffers.normed_.matrix(count, x.columns);
    quant::Activation hidden = buffers.wide_.matrix(count, config_.encoder.linear_units);
    norm.forward(context, rows, normed);
    w_1.forward(context, normed, hidden);
    w_2.forward(context, hidden, quant::Residual(rows, 0.5f), rows);
  }
}

// Makes room for keys and values of the rows of a fused projection, which attend() appends.
void Encoder::append(ExecContext& context, EncoderCache::Layer& layer, Matrix qkv, EncoderBuffers& buffers) const {
  const std::int64_t d = config_.encoder.output_size, needed = layer.kv.length + qkv.rows;
  if (needed > layer.kv.capacity) {
    KvCache larger = layer.kv;
    larger.capacity = layer.kv.length == 0 ? needed : std::max(needed, 2 * layer.kv.capacity);
    larger.length = 0;
    Memory memory(context.gpu, kernels::kv_cache_bytes(larger.heads, larger.head_dim, larger.capacity, larger.storage));
    larger.data = memory.data();
    if (layer.kv.length > 0) {
      const kernels::CopyArgs copy{.from = &layer.kv, .to = &larger, .length = layer.kv.length};
      kernels::kv_copy(context, {&copy, 1});
    }
    layer.kv = larger;
    layer.memory = std::move(memory);
  }
  buffers.appends_.push_back({.kv = &layer.kv, .k = qkv.data + d, .ldk = qkv.stride, .v = qkv.data + 2 * d,
                              .ldv = qkv.stride, .count = qkv.rows});
}

// The attention of the piece's chunk number `round`; with unlimited left context all chunks are in round 0.
// False when there is none.
bool Encoder::add_attention(ExecContext& context, int block, const Piece& piece, std::int64_t row, int round,
                            Matrix qkv, Matrix out, const PositionTable& positions, EncoderBuffers& buffers) const {
  EncoderCache& cache = *piece.cache;
  EncoderCache::Layer& layer = cache.layer(block);
  const Block& shifts = blocks_[static_cast<std::size_t>(block)];
  const std::int64_t start = cache.frames_, end = start + piece.rows;
  const std::int64_t chunk = cache.mask_.chunk_size > 0 ? cache.mask_.chunk_size : end;
  const bool limited = cache.mask_.chunk_size > 0 && cache.mask_.num_left_chunks >= 0;
  const auto chunk_end = [&](std::int64_t frame) { return std::min(end, (frame / chunk + 1) * chunk); };
  const auto add = [&](std::int64_t from, std::int64_t to) {
    const std::int64_t at = row + from - start;
    KvCache seen = layer.kv;
    seen.length = to - layer.first;
    buffers.caches_.push_back(seen);
    const std::size_t number = buffers.attention_.size();
    if (buffers.position_scratch_.size() <= number) buffers.position_scratch_.resize(number + 1);
    Memory& scratch = buffers.position_scratch_[number];
    buffers.caches_.push_back(positions.view(context, block, layer.first, seen.length, scratch));
    buffers.attention_.push_back({.q = qkv.row(at),
                                  .ldq = qkv.stride,
                                  .queries = to - from,
                                  .kv = nullptr,  // set when the vector of caches does not move any more
                                  .scale = 1.0f / std::sqrt(static_cast<float>(config_.encoder.head_dim())),
                                  .q_position = qkv.row(at),
                                  .q_shift = shifts.pos_bias_u.data(),
                                  .q_position_shift = shifts.pos_bias_v.data(),
                                  .out = out.row(at),
                                  .ldo = out.stride,
                                  .mixed = true});
  };
  if (!limited) {
    if (round > 0) return false;
    append(context, layer, qkv.row_range(row, piece.rows), buffers);
    for (std::int64_t frame = start; frame < end; frame = chunk_end(frame)) add(frame, chunk_end(frame));
    return true;
  }
  std::int64_t frame = start;
  for (int i = 0; i < round && frame < end; ++i) frame = chunk_end(frame);
  if (frame >= end) return false;
  const std::int64_t first = std::max<std::int64_t>(0, (frame / chunk - cache.mask_.num_left_chunks) * chunk);
  const kernels::DropArgs drop{.kv = &layer.kv, .count = first - layer.first};
  kernels::kv_drop_front(context, {&drop, 1});
  layer.first = first;
  append(context, layer, qkv.row_range(row + frame - start, chunk_end(frame) - frame), buffers);
  add(frame, chunk_end(frame));
  return true;
}

// x += linear_out(attention(norm_mha(x))).
void Encoder::attend(ExecContext& context, int index, Matrix x, std::span<const Piece> pieces,
                     const PositionTable& positions, EncoderBuffers& buffers) const {
  const Block& block = blocks_[static_cast<std::size_t>(index)];
  const std::int64_t d = x.columns;
  const Matrix qkv = buffers.wide_.matrix(x.rows, 3 * d);
  const Matrix out = buffers.normed_.matrix(x.rows, d);
  quant::Activation normed = out;
  block.norm_mha.forward(context, x, normed);
  block.linear_qkv.forward(context, normed, qkv);
  for (const Piece& piece : pieces) {
    EncoderCache::Layer& layer = piece.cache->layer(index);
    if (piece.cache->whole_) layer.kv.length = layer.first = 0;
  }
  for (int round = 0;; ++round) {
    buffers.appends_.clear();
    buffers.attention_.clear();
    buffers.caches_.clear();
    std::int64_t row = 0;
    bool any = false;
    for (const Piece& piece : pieces) {
      any |= add_attention(context, index, piece, row, round, qkv, out, positions, buffers);
      row += piece.rows;
    }
    if (!any) break;
    kernels::kv_append(context, buffers.appends_);
    for (std::size_t i = 0; i < buffers.attention_.size(); ++i) {
      buffers.attention_[i].kv = &buffers.caches_[2 * i];
      buffers.attention_[i].positions = &buffers.caches_[2 * i + 1];
    }
    layers::attend(context, block.self_attn, x.rows, buffers.attention_);
  }
  block.linear_out.forward(context, out, x, x);
}

// What the gate of a block gives for a frame of zeros, [1, D].
Matrix Encoder::zero_gate(ExecContext& context, int index, EncoderBuffers& buffers) const {
  layers::Buffer& zeros = buffers.zero_gates_[static_cast<std::size_t>(index)];
  const std::int64_t d = config_.encoder.output_size;
  if (zeros.floats() == 0) {
    zeros = layers::Buffer(d, context.gpu);
    blocks_[static_cast<std::size_t>(index)].conv_module.gate_of_zeros(context, zeros.matrix(1, d));
  }
  return zeros.matrix(1, d);
}

// The convolutions of whole utterances as one over all of them, each between its padding: few kernels, however many
// utterances there are. What the convolution gives across a border is left behind.
void Encoder::convolve_together(ExecContext& context, int index, Matrix wide, std::span<const Piece> pieces, Matrix out,
                                EncoderBuffers& buffers) const {
  const ConvModule& module = blocks_[static_cast<std::size_t>(index)].conv_module;
  const std::int64_t d = out.columns, rows = out.rows, extra = module.taps() - 1;
  const std::int64_t before = config_.encoder.causal ? extra : extra / 2;
  const std::int64_t padded_rows = rows + static_cast<std::int64_t>(pieces.size()) * extra;
  const Matrix gated{wide.data + 2 * rows * d, rows + 1, d, d};
  const Matrix padded{gated.data + (rows + 1) * d, padded_rows, d, d};
  const Matrix outputs{padded.data + padded_rows * d, padded_rows - extra, d, d};
  module.gate(context, wide, gated.row_range(0, rows));
  std::int32_t filler = kernels::kZeroRow;
  if (config_.encoder.causal && extra > 0) {  // frames of zeros, as the module sees them
    kernels::shift_scale_rows(context, {.x = zero_gate(context, index, buffers), .y = gated.row_range(rows, 1)});
    filler = static_cast<std::int32_t>(rows);
  }
  buffers.into_.clear();
  buffers.back_.clear();
  std::int32_t row = 0;
  for (const Piece& piece : pieces) {
    buffers.into_.insert(buffers.into_.end(), static_cast<std::size_t>(before), filler);
    const auto first = static_cast<std::int32_t>(buffers.into_.size()) - static_cast<std::int32_t>(before);
    for (std::int32_t i = 0; i < piece.rows; ++i) {
      buffers.into_.push_back(row++);
      buffers.back_.push_back(first + i);
    }
    buffers.into_.insert(buffers.into_.end(), static_cast<std::size_t>(extra - before), filler);
  }
  kernels::gather_rows(context, gated, buffers.into_, padded);
  module.convolve(context, padded, outputs);
  kernels::gather_rows(context, outputs, buffers.back_, out);
  module.activate(context, out);
}

// x += conv_module(norm_conv(x)).
void Encoder::convolve(ExecContext& context, int index, Matrix x, std::span<const Piece> pieces,
                       EncoderBuffers& buffers) const {
  const Block& block = blocks_[static_cast<std::size_t>(index)];
  const std::int64_t d = x.columns, extra = block.conv_module.taps() - 1;
  const std::int64_t before = config_.encoder.causal ? extra : extra / 2;
  const std::int64_t padded_rows = x.rows + static_cast<std::int64_t>(pieces.size()) * extra;
  const Matrix wide = buffers.wide_.matrix(x.rows, 2 * d);
  const Matrix padded{wide.data + 2 * x.rows * d, padded_rows, d, d};
  quant::Activation normed = buffers.normed_.matrix(x.rows, d);
  block.norm_conv.forward(context, x, normed);
  block.conv_module.widen(context, normed, wide);
  const Matrix out = buffers.normed_.matrix(x.rows, d);
  if (context.gpu != nullptr && pieces.size() > 1 &&
      std::ranges::all_of(pieces, [](const Piece& piece) { return piece.cache->whole_; })) {
    convolve_together(context, index, wide, pieces, out, buffers);
    block.conv_module.add(context, out, x);
    return;
  }
  std::int64_t row = 0, at = 0;
  for (const Piece& piece : pieces) {
    layers::Buffer& tail = piece.cache->layer(index).tail;
    const Matrix field = padded.row_range(at, piece.rows + extra);
    ConstMatrix head;
    if (!config_.encoder.causal) {  // zeros on both sides
      const std::size_t frame = static_cast<std::size_t>(d) * sizeof(float);
      clear(context.gpu, field.data, static_cast<std::size_t>(before) * frame);
      clear(context.gpu, field.row(before + piece.rows), static_cast<std::size_t>(extra - before) * frame);
    } else if (extra > 0 && piece.cache->frames_ > 0) {
      head = tail.matrix(extra, d);
    } else if (extra > 0) {  // frames of zeros, as the module sees them
      head = {zero_gate(context, index, buffers).data, extra, d, 0};
    }
    block.conv_module.gate(context, wide.row_range(row, piece.rows),
                           field.row_range(before - head.rows, head.rows + piece.rows), head);
    block.conv_module.convolve(context, field, out.row_range(row, piece.rows));
    block.conv_module.activate(context, out.row_range(row, piece.rows));
    if (config_.encoder.causal && !piece.cache->whole_ && extra > 0) {
      if (tail.floats() == 0) tail = layers::Buffer(extra * d, context.gpu);
      kernels::shift_scale_rows(context, {.x = field.row_range(piece.rows, extra), .y = tail.matrix(extra, d)});
    }
    row += piece.rows;
    at += field.rows;
  }
  block.conv_module.add(context, out, x);
}

Matrix Encoder::forward(ExecContext& context, Matrix x, std::span<const Piece> pieces,
                        PositionTable& positions, EncoderBuffers& buffers) const {
  std::int64_t rows = 0, longest = 0;
  for (const Piece& piece : pieces) {
    CHECK(piece.rows > 0 && (!piece.cache->whole_ || piece.cache->frames_ == 0), "one piece of a whole utterance");
    rows += piece.rows;
    longest = std::max(longest, piece.cache->frames_ + piece.rows);
  }
  CHECK(rows == x.rows && x.stride == x.columns, "rows of all pieces, side by side");
  buffers.reserve(config_, rows, static_cast<std::int64_t>(pieces.size()));
  positions.reserve(context, longest);
  for (int index = 0; index < config_.encoder.num_blocks; ++index) {
    const Block& block = blocks_[static_cast<std::size_t>(index)];
    feed_forward(context, block.norm_ff_macaron, block.macaron_w_1, block.macaron_w_2, x, buffers);
    attend(context, index, x, pieces, positions, buffers);
    convolve(context, index, x, pieces, buffers);
    feed_forward(context, block.norm_ff, block.w_1, block.w_2, x, buffers);
    block.norm_final.forward(context, x, x);
  }
  for (const Piece& piece : pieces) piece.cache->frames_ += piece.rows;
  const Matrix out = buffers.normed_.matrix(rows, x.columns);
  after_norm_.forward(context, x, out);
  return out;
}

void Encoder::list(layers::LayerList& layers) {
  for (Block& block : blocks_) {
    for (layers::LayerNorm* norm : {&block.norm_ff_macaron, &block.norm_mha, &block.norm_conv, &block.norm_ff,
                                    &block.norm_final}) {
      layers.norms.push_back(norm);
    }
    for (layers::Linear* linear : {&block.macaron_w_1, &block.macaron_w_2, &block.linear_qkv, &block.linear_pos,
                                   &block.linear_out}) {
      layers.linears.push_back(linear);
    }
    block.conv_module.list(layers);
    for (layers::Linear* linear : {&block.w_1, &block.w_2}) layers.linears.push_back(linear);
    const Shape heads = {config_.encoder.attention_heads, config_.encoder.head_dim()};
    layers.tables.push_back({.name = block.self_attn + ".pos_bias_u", .shape = heads, .values = &block.pos_bias_u});
    layers.tables.push_back({.name = block.self_attn + ".pos_bias_v", .shape = heads, .values = &block.pos_bias_v});
  }
  layers.norms.push_back(&after_norm_);
}

}  // namespace oasr::models::conformer
