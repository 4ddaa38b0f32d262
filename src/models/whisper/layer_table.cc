#include "models/whisper/layer_table.h"

#include <array>

namespace oasr::models::whisper {
namespace {

using kernels::Activation;
using quant::Fold;

enum class Width : std::uint8_t { model, ffn };

// A product of a block: rows of `parts` stacked, `out_parts` times `out` wide.
struct LayerRow {
  std::string_view name;
  std::array<std::string_view, 3> parts;  // none: the name itself
  Width in = Width::model;
  Width out = Width::model;
  std::int64_t out_parts = 1;
  Activation activation = Activation::none;
  bool decoder_only = false;
};
constexpr LayerRow kRows[] = {
    {"self_attn.qkv_proj",
     {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"},
     Width::model, Width::model, 3, Activation::none, false},
    {"self_attn.out_proj", {}, Width::model, Width::model, 1, Activation::none, false},
    {"encoder_attn.q_proj", {}, Width::model, Width::model, 1, Activation::none, true},
    {"encoder_attn.kv_proj",
     {"encoder_attn.k_proj", "encoder_attn.v_proj"},
     Width::model, Width::model, 2, Activation::none, true},
    {"encoder_attn.out_proj", {}, Width::model, Width::model, 1, Activation::none, true},
    {"fc1", {}, Width::model, Width::ffn, 1, Activation::gelu, false},
    {"fc2", {}, Width::ffn, Width::model, 1, Activation::none, false},
};

layers::LinearSpec spec_of(const LayerRow& row, const std::string& block) {
  layers::LinearSpec spec{.path = block + "." + std::string(row.name), .parts = {},
                          .activation = row.activation};
  for (const std::string_view part : row.parts) {
    if (!part.empty()) spec.parts.push_back(block + "." + std::string(part));
  }
  return spec;
}

struct LayerSide {
  std::string path;  // "model.encoder"
  int layers;
  int ffn;
  int heads;
  bool decoder;

  std::string block(int layer) const { return path + ".layers." + std::to_string(layer); }
};

std::array<LayerSide, 2> sides(const Config& config) {
  return {LayerSide{"model.encoder", config.encoder_layers, config.encoder_ffn_dim,
               config.encoder_attention_heads, false},
          LayerSide{"model.decoder", config.decoder_layers, config.decoder_ffn_dim,
               config.decoder_attention_heads, true}};
}

void add_block(quant::QuantLayout& layout, const std::string& block, bool decoder) {
  const auto of = [&](std::string_view name) { return block + "." + std::string(name); };
  layout.groups.push_back({.consumers = {of("self_attn.qkv_proj")},
                           .fold = Fold::norm_affine,
                           .producer = of("self_attn_layer_norm"),
                           .fuse_output_quant = true});
  layout.groups.push_back({.consumers = {of("self_attn.out_proj")},
                           .fold = Fold::v_to_o,
                           .producer = of("self_attn.qkv_proj")});
  if (decoder) {
    layout.groups.push_back({.consumers = {of("encoder_attn.q_proj")},
                             .fold = Fold::norm_affine,
                             .producer = of("encoder_attn_layer_norm"),
                             .fuse_output_quant = true});
    layout.groups.push_back({.consumers = {of("encoder_attn.out_proj")},
                             .fold = Fold::v_to_o,
                             .producer = of("encoder_attn.kv_proj")});
  }
  layout.groups.push_back({.consumers = {of("fc1")},
                           .fold = Fold::norm_affine,
                           .producer = of("final_layer_norm"),
                           .fuse_output_quant = true});
  layout.groups.push_back({.consumers = {of("fc2")}, .fold = Fold::runtime, .producer = {}});
  // A decoder is calibrated on few tokens, and those of another domain go beyond any range that they gave: with
  // one scale in layer 3 alone, base loses 8 points of word error on spelled words. A step has one row, too.
  if (!decoder) layout.chains.push_back({.producer = of("fc1"), .consumer = of("fc2")});
}

// Positions are added to the residual stream, not to queries or keys. Rows of k_proj have no bias.
void add_attention(quant::QuantLayout& layout, const std::string& block, int heads, std::int64_t d, bool decoder) {
  const std::string qkv = block + ".self_attn.qkv_proj", cross = block + ".encoder_attn.";
  layout.attention.push_back({.query = qkv, .key = qkv, .query_row = 0, .key_row = d, .query_heads = heads,
                              .kv_heads = heads, .head_dim = d / heads});
  if (!decoder) return;
  layout.attention.push_back({.query = cross + "q_proj", .key = cross + "kv_proj", .query_heads = heads,
                              .kv_heads = heads, .head_dim = d / heads});
}

}  // namespace

layers::LinearSpec linear_spec(const std::string& block, std::string_view name) {
  for (const LayerRow& row : kRows) {
    if (row.name == name) return spec_of(row, block);
  }
  CHECK(false, "no product is called " + std::string(name));
}

std::vector<LinearShape> linear_shapes(const Config& config) {
  std::vector<LinearShape> shapes;
  for (const LayerSide& side : sides(config)) {
    const auto width = [&](Width w) -> std::int64_t { return w == Width::ffn ? side.ffn : config.d_model; };
    for (int layer = 0; layer < side.layers; ++layer) {
      for (const LayerRow& row : kRows) {
        if (row.decoder_only && !side.decoder) continue;
        shapes.push_back({.spec = spec_of(row, side.block(layer)),
                          .in_features = width(row.in),
                          .out_features = row.out_parts * width(row.out)});
      }
    }
  }
  return shapes;
}

std::vector<quant::LayerFacts> layer_facts(const Config& config) {
  using quant::QuantKind;
  const std::string encoder = "model.encoder.";
  std::vector<quant::LayerFacts> facts = {
      {.path = encoder + "conv1", .kind = QuantKind::conv1d, .in_features = config.num_mel_bins,
       .out_features = config.d_model, .groups = 1, .not_quantizable = {}},
      {.path = encoder + "conv2", .kind = QuantKind::conv1d, .in_features = config.d_model,
       .out_features = config.d_model, .groups = 1, .not_quantizable = {}}};
  for (const LinearShape& shape : linear_shapes(config)) {
    facts.push_back({.path = shape.spec.path, .kind = QuantKind::linear,
                     .in_features = shape.in_features, .out_features = shape.out_features,
                     .groups = 1, .not_quantizable = {}, .parts = shape.spec.parts});
  }
  facts.push_back({.path = "proj_out", .kind = QuantKind::linear, .in_features = config.d_model,
                   .out_features = config.vocab_size, .groups = 1,
                   .not_quantizable = config.tie_word_embeddings
                                          ? "its weight is the token embedding's" : ""});
  return facts;
}

quant::QuantLayout quantization_layout(const Config& config) {
  quant::QuantLayout layout;
  std::vector<std::string> cross;
  for (const LayerSide& side : sides(config)) {
    for (int layer = 0; layer < side.layers; ++layer) {
      add_block(layout, side.block(layer), side.decoder);
      add_attention(layout, side.block(layer), side.heads, config.d_model, side.decoder);
      if (side.decoder) cross.push_back(side.block(layer) + ".encoder_attn.kv_proj");
    }
  }
  layout.groups.push_back({.consumers = std::move(cross), .fold = Fold::runtime, .producer = {}});
  return layout;
}

}  // namespace oasr::models::whisper
