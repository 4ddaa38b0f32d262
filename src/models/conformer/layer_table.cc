#include "models/conformer/layer_table.h"

namespace oasr::models::conformer {
namespace {

using kernels::Activation;
using quant::Fold;
using quant::QuantKind;

void add(std::vector<LinearShape>& shapes, std::string path, std::int64_t in, std::int64_t out,
         Activation activation = Activation::none, QuantKind kind = QuantKind::linear) {
  shapes.push_back({.spec = {.path = std::move(path), .parts = {}, .activation = activation},
                    .in_features = in,
                    .out_features = out,
                    .kind = kind});
}

void add_feed_forward(std::vector<LinearShape>& shapes, const std::string& path, std::int64_t d,
                      std::int64_t units, Activation activation) {
  add(shapes, path + ".w_1", d, units, activation);
  add(shapes, path + ".w_2", units, d);
}

void add_encoder(std::vector<LinearShape>& shapes, const Config& config) {
  const std::int64_t d = config.encoder.output_size, units = config.encoder.linear_units;
  add(shapes, "encoder.embed.out.0", config.subsampled_bins() * d, d);
  shapes.back().not_quantizable = "the subsampling front end stays at full precision";
  for (int block = 0; block < config.encoder.num_blocks; ++block) {
    const std::string path = encoder_block(block);
    add_feed_forward(shapes, path + ".feed_forward_macaron", d, units, config.encoder.activation);
    const std::string attention = path + ".self_attn.linear_";
    add(shapes, attention + "qkv", d, 3 * d);
    shapes.back().spec.parts = {attention + "q", attention + "k", attention + "v"};
    add(shapes, attention + "pos", d, d);
    shapes.back().not_quantizable = "its input is the table of positions, not speech";
    add(shapes, attention + "out", d, d);
    add(shapes, path + ".conv_module.pointwise_conv1", d, 2 * d, Activation::none, QuantKind::pointwise_conv);
    add(shapes, path + ".conv_module.pointwise_conv2", d, d, Activation::none, QuantKind::pointwise_conv);
    add_feed_forward(shapes, path + ".feed_forward", d, units, config.encoder.activation);
  }
  add(shapes, "ctc.ctc_lo", d, config.output_dim);
  shapes.back().not_quantizable = "the CTC head stays at full precision";
}

void add_decoder(std::vector<LinearShape>& shapes, const Config& config, bool left, int blocks) {
  const std::int64_t d = config.encoder.output_size;
  for (int block = 0; block < blocks; ++block) {
    const std::string path = decoder_block(left, block);
    for (const char* attention : {".self_attn", ".src_attn"}) {
      for (const char* name : {"q", "k", "v", "out"}) add(shapes, path + attention + ".linear_" + name, d, d);
    }
    add_feed_forward(shapes, path + ".feed_forward", d, config.decoder->linear_units,
                     config.decoder->activation);
  }
  if (blocks == 0) return;
  add(shapes, std::string("decoder.") + (left ? "left" : "right") + "_decoder.output_layer", d, config.output_dim);
  shapes.back().not_quantizable = "the decoder's output layer stays at full precision";
}

// Products that read a norm's output and nothing else does.
void norm_group(quant::QuantLayout& layout, std::vector<std::string> consumers, std::string norm, bool fuse) {
  layout.groups.push_back({.consumers = std::move(consumers),
                           .fold = Fold::norm_affine,
                           .producer = std::move(norm),
                           .fuse_output_quant = fuse});
}

void runtime_group(quant::QuantLayout& layout, std::vector<std::string> consumers) {
  layout.groups.push_back({.consumers = std::move(consumers), .fold = Fold::runtime, .producer = {}});
}

// w_1, activation, w_2: a positively homogeneous activation lets the rows of w_1 absorb the scale.
void feed_forward(quant::QuantLayout& layout, const std::string& path, const std::string& norm,
                  Activation activation) {
  norm_group(layout, {path + ".w_1"}, norm, true);
  if (activation == Activation::relu) {
    layout.groups.push_back({.consumers = {path + ".w_2"}, .fold = Fold::producer_rows, .producer = path + ".w_1"});
  } else {
    runtime_group(layout, {path + ".w_2"});
  }
  layout.chains.push_back({.producer = path + ".w_1", .consumer = path + ".w_2"});
}

void encoder_layout(quant::QuantLayout& layout, const Config& config) {
  layout.batch_invariant.push_back("encoder.embed.out.0");
  for (int block = 0; block < config.encoder.num_blocks; ++block) {
    const std::string path = encoder_block(block);
    const std::string attention = path + ".self_attn.linear_", convolution = path + ".conv_module.pointwise_conv";
    feed_forward(layout, path + ".feed_forward_macaron", path + ".norm_ff_macaron", config.encoder.activation);
    norm_group(layout, {attention + "qkv"}, path + ".norm_mha", true);
    layout.groups.push_back({.consumers = {attention + "out"}, .fold = Fold::v_to_o, .producer = attention + "qkv"});
    // No scale of its keys: pos_bias_u and pos_bias_v are added to the queries behind linear_q, and
    // linear_pos makes further keys, so that q · k is but one of the terms of a score. Between the norm and
    // the convolution lie the mask, the padding and a stream's cache.
    norm_group(layout, {convolution + "1"}, path + ".norm_conv", false);
    runtime_group(layout, {convolution + "2"});
    feed_forward(layout, path + ".feed_forward", path + ".norm_ff", config.encoder.activation);
    layout.batch_invariant.push_back(attention + "pos");
  }
}

void decoder_layout(quant::QuantLayout& layout, const Config& config, bool left, int blocks) {
  for (int block = 0; block < blocks; ++block) {
    const std::string path = decoder_block(left, block);
    const auto product = [&](const char* name) { return path + name; };
    norm_group(layout,
               {product(".self_attn.linear_q"), product(".self_attn.linear_k"), product(".self_attn.linear_v")},
               path + ".norm1", true);
    layout.groups.push_back({.consumers = {product(".self_attn.linear_out")},
                             .fold = Fold::v_to_o,
                             .producer = product(".self_attn.linear_v")});
    norm_group(layout, {product(".src_attn.linear_q")}, path + ".norm2", true);
    runtime_group(layout, {product(".src_attn.linear_k"), product(".src_attn.linear_v")});
    layout.groups.push_back({.consumers = {product(".src_attn.linear_out")},
                             .fold = Fold::v_to_o,
                             .producer = product(".src_attn.linear_v")});
    feed_forward(layout, path + ".feed_forward", path + ".norm3", config.decoder->activation);
    const std::int64_t heads = config.decoder->attention_heads;
    for (const char* attention : {".self_attn", ".src_attn"}) {
      layout.attention.push_back({.query = path + attention + ".linear_q",
                                  .key = path + attention + ".linear_k",
                                  .query_heads = heads,
                                  .kv_heads = heads,
                                  .head_dim = config.encoder.output_size / heads});
    }
  }
}

}  // namespace

std::string encoder_block(int block) { return "encoder.encoders." + std::to_string(block); }

std::string decoder_block(bool left, int block) {
  return std::string("decoder.") + (left ? "left" : "right") + "_decoder.decoders." + std::to_string(block);
}

std::vector<LinearShape> linear_shapes(const Config& config) {
  std::vector<LinearShape> shapes;
  add_encoder(shapes, config);
  if (config.decoder) {
    add_decoder(shapes, config, true, config.decoder->num_blocks);
    add_decoder(shapes, config, false, config.decoder->r_num_blocks);
  }
  return shapes;
}

layers::LinearSpec linear_spec(const Config& config, const std::string& path) {
  for (LinearShape& shape : linear_shapes(config)) {
    if (shape.spec.path == path) return std::move(shape.spec);
  }
  CHECK(false, "no product is called " + path);
}

std::vector<quant::LayerFacts> layer_facts(const Config& config) {
  std::vector<quant::LayerFacts> facts;
  const std::int64_t d = config.encoder.output_size;
  for (std::size_t stage = 0; stage < config.encoder.subsampling.size(); ++stage) {
    facts.push_back({.path = "encoder.embed.convs." + std::to_string(stage),
                     .kind = QuantKind::conv2d,
                     .in_features = stage == 0 ? 1 : d,
                     .out_features = d});
  }
  for (const LinearShape& shape : linear_shapes(config)) {
    facts.push_back({.path = shape.spec.path,
                     .kind = shape.kind,
                     .in_features = shape.in_features,
                     .out_features = shape.out_features,
                     .not_quantizable = shape.not_quantizable,
                     .parts = shape.spec.parts});
  }
  return facts;
}

quant::QuantLayout quantization_layout(const Config& config) {
  quant::QuantLayout layout;
  encoder_layout(layout, config);
  if (config.decoder) {
    decoder_layout(layout, config, true, config.decoder->num_blocks);
    decoder_layout(layout, config, false, config.decoder->r_num_blocks);
  }
  return layout;
}

}  // namespace oasr::models::conformer
