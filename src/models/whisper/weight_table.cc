#include "models/whisper/weight_table.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <string>

#include "models/whisper/layer_table.h"

namespace oasr::models::whisper {
namespace {

using layers::ParameterSpec;
using Presence = ParameterSpec::Presence;

// A named extent of a shape.
enum class Extent : std::uint8_t { none, model, ffn, mels, width, vocabulary, source, target };

struct Row {
  std::string_view name;     // Hugging Face; '#' is the number of the layer
  std::string_view openai;   // and ggml; empty: not there
  std::string_view ct2;      // CTranslate2; empty: not there
  Extent rows, columns, depth;
  int part, parts;           // CTranslate2 stacks query, key and value
  Presence presence;
};

constexpr Extent D = Extent::model, F = Extent::ffn, N = Extent::none;
constexpr Presence kRequired = Presence::required, kZeros = Presence::zeros,
                   kOptional = Presence::optional, kIgnored = Presence::ignored;

// clang-format off
constexpr Row kEncoder[] = {
    {"conv1.weight",           "conv1.weight",         "conv1/weight", D, Extent::mels, Extent::width, 0, 1, kRequired},
    {"conv1.bias",             "conv1.bias",           "conv1/bias",   D, N, N, 0, 1, kRequired},
    {"conv2.weight",           "conv2.weight",         "conv2/weight", D, D, Extent::width, 0, 1, kRequired},
    {"conv2.bias",             "conv2.bias",           "conv2/bias",   D, N, N, 0, 1, kRequired},
    {"embed_positions.weight", "positional_embedding", "position_encodings/encodings", Extent::source, D, N, 0, 1, kRequired},
    {"layer_norm.weight",      "ln_post.weight",       "layer_norm/gamma", D, N, N, 0, 1, kRequired},
    {"layer_norm.bias",        "ln_post.bias",         "layer_norm/beta",  D, N, N, 0, 1, kRequired},
};

constexpr Row kDecoder[] = {
    {"embed_tokens.weight",    "token_embedding.weight", "embeddings/weight", Extent::vocabulary, D, N, 0, 1, kRequired},
    {"embed_positions.weight", "positional_embedding",   "position_encodings/encodings", Extent::target, D, N, 0, 1, kRequired},
    {"layer_norm.weight",      "ln.weight",              "layer_norm/gamma", D, N, N, 0, 1, kRequired},
    {"layer_norm.bias",        "ln.bias",                "layer_norm/beta",  D, N, N, 0, 1, kRequired},
    // The causal mask of old OpenAI checkpoints: computed here.
    {"mask",                   "mask", "",                      N, N, N, 0, 1, kIgnored},
};

constexpr Row kSelfAttention[] = {
    {"layers.#.self_attn.q_proj.weight",   "blocks.#.attn.query.weight", "layer_#/self_attention/linear_0/weight", D, D, N, 0, 3, kRequired},
    {"layers.#.self_attn.q_proj.bias",     "blocks.#.attn.query.bias",   "layer_#/self_attention/linear_0/bias",   D, N, N, 0, 3, kRequired},
    {"layers.#.self_attn.k_proj.weight",   "blocks.#.attn.key.weight",   "layer_#/self_attention/linear_0/weight", D, D, N, 1, 3, kRequired},
    {"layers.#.self_attn.k_proj.bias",     "",                           "layer_#/self_attention/linear_0/bias",   D, N, N, 1, 3, kZeros},
    {"layers.#.self_attn.v_proj.weight",   "blocks.#.attn.value.weight", "layer_#/self_attention/linear_0/weight", D, D, N, 2, 3, kRequired},
    {"layers.#.self_attn.v_proj.bias",     "blocks.#.attn.value.bias",   "layer_#/self_attention/linear_0/bias",   D, N, N, 2, 3, kRequired},
    {"layers.#.self_attn.out_proj.weight", "blocks.#.attn.out.weight",   "layer_#/self_attention/linear_1/weight", D, D, N, 0, 1, kRequired},
    {"layers.#.self_attn.out_proj.bias",   "blocks.#.attn.out.bias",     "layer_#/self_attention/linear_1/bias",   D, N, N, 0, 1, kRequired},
    {"layers.#.self_attn_layer_norm.weight", "blocks.#.attn_ln.weight",  "layer_#/self_attention/layer_norm/gamma", D, N, N, 0, 1, kRequired},
    {"layers.#.self_attn_layer_norm.bias",   "blocks.#.attn_ln.bias",    "layer_#/self_attention/layer_norm/beta",  D, N, N, 0, 1, kRequired},
};

constexpr Row kCrossAttention[] = {
    {"layers.#.encoder_attn.q_proj.weight",   "blocks.#.cross_attn.query.weight", "layer_#/attention/linear_0/weight", D, D, N, 0, 1, kRequired},
    {"layers.#.encoder_attn.q_proj.bias",     "blocks.#.cross_attn.query.bias",   "layer_#/attention/linear_0/bias",   D, N, N, 0, 1, kRequired},
    {"layers.#.encoder_attn.k_proj.weight",   "blocks.#.cross_attn.key.weight",   "layer_#/attention/linear_1/weight", D, D, N, 0, 2, kRequired},
    {"layers.#.encoder_attn.k_proj.bias",     "",                                 "layer_#/attention/linear_1/bias",   D, N, N, 0, 2, kZeros},
    {"layers.#.encoder_attn.v_proj.weight",   "blocks.#.cross_attn.value.weight", "layer_#/attention/linear_1/weight", D, D, N, 1, 2, kRequired},
    {"layers.#.encoder_attn.v_proj.bias",     "blocks.#.cross_attn.value.bias",   "layer_#/attention/linear_1/bias",   D, N, N, 1, 2, kRequired},
    {"layers.#.encoder_attn.out_proj.weight", "blocks.#.cross_attn.out.weight",   "layer_#/attention/linear_2/weight", D, D, N, 0, 1, kRequired},
    {"layers.#.encoder_attn.out_proj.bias",   "blocks.#.cross_attn.out.bias",     "layer_#/attention/linear_2/bias",   D, N, N, 0, 1, kRequired},
    {"layers.#.encoder_attn_layer_norm.weight", "blocks.#.cross_attn_ln.weight",  "layer_#/attention/layer_norm/gamma", D, N, N, 0, 1, kRequired},
    {"layers.#.encoder_attn_layer_norm.bias",   "blocks.#.cross_attn_ln.bias",    "layer_#/attention/layer_norm/beta",  D, N, N, 0, 1, kRequired},
};

constexpr Row kFeedForward[] = {
    {"layers.#.fc1.weight",              "blocks.#.mlp.0.weight",  "layer_#/ffn/linear_0/weight",   F, D, N, 0, 1, kRequired},
    {"layers.#.fc1.bias",                "blocks.#.mlp.0.bias",    "layer_#/ffn/linear_0/bias",     F, N, N, 0, 1, kRequired},
    {"layers.#.fc2.weight",              "blocks.#.mlp.2.weight",  "layer_#/ffn/linear_1/weight",   D, F, N, 0, 1, kRequired},
    {"layers.#.fc2.bias",                "blocks.#.mlp.2.bias",    "layer_#/ffn/linear_1/bias",     D, N, N, 0, 1, kRequired},
    {"layers.#.final_layer_norm.weight", "blocks.#.mlp_ln.weight", "layer_#/ffn/layer_norm/gamma",  D, N, N, 0, 1, kRequired},
    {"layers.#.final_layer_norm.bias",   "blocks.#.mlp_ln.bias",   "layer_#/ffn/layer_norm/beta",   D, N, N, 0, 1, kRequired},
};
// clang-format on

struct Side {
  std::string_view name;  // "encoder"
  int layers;
  int ffn;
};

std::int64_t extent_of(Extent extent, const Config& config, const Side& side) {
  switch (extent) {
    case Extent::none: return 0;
    case Extent::model: return config.d_model;
    case Extent::ffn: return side.ffn;
    case Extent::mels: return config.num_mel_bins;
    case Extent::width: return 3;
    case Extent::vocabulary: return config.vocab_size;
    case Extent::source: return config.max_source_positions;
    case Extent::target: return config.max_target_positions;
  }
  CHECK(false, "an extent without a value");
}

std::string numbered(std::string_view pattern, int layer) {
  std::string text(pattern);
  if (const auto at = text.find('#'); at != std::string::npos) {
    text.replace(at, 1, std::to_string(layer));
  }
  return text;
}

// How a checkpoint spells a row; empty when it does not have the tensor.
std::string stored_name(const Row& row, const Side& side, int layer, Spelling spelling) {
  const std::string prefix(side.name);
  const std::string_view pattern = spelling == Spelling::ctranslate2 ? row.ct2 : row.openai;
  if (pattern.empty()) return {};  // Hugging Face has the same tensors as OpenAI
  switch (spelling) {
    case Spelling::native:
    case Spelling::hugging_face: return "model." + prefix + "." + numbered(row.name, layer);
    case Spelling::hugging_face_bare: return prefix + "." + numbered(row.name, layer);
    case Spelling::openai: return prefix + "." + numbered(pattern, layer);
    case Spelling::ctranslate2: return prefix + "/" + numbered(pattern, layer);
  }
  CHECK(false, "a spelling without a rule");
}

void add_rows(std::vector<ParameterSpec>& specs, const Config& config, const Side& side, int layer,
              Spelling spelling, std::span<const Row> rows) {
  for (const Row& row : rows) {
    ParameterSpec spec;
    spec.stored = stored_name(row, side, layer, spelling);
    if (spec.stored.empty()) continue;
    spec.name = "model." + std::string(side.name) + "." + numbered(row.name, layer);
    std::vector<std::int64_t> extents;
    for (const Extent e : {row.rows, row.columns, row.depth}) {
      if (e != Extent::none) extents.push_back(extent_of(e, config, side));
    }
    spec.shape = Shape::checked(extents).value_or(Shape{});
    if (spelling == Spelling::ctranslate2) {
      spec.part = row.part;
      spec.parts = row.parts;
    }
    spec.presence = row.presence;
    specs.push_back(std::move(spec));
  }
}

// The output head: Whisper's is tied to the token embedding; a checkpoint may repeat it.
ParameterSpec head(const Config& config, Spelling spelling) {
  return {.name = "proj_out.weight",
          .shape = {config.vocab_size, config.d_model},
          .stored = spelling == Spelling::ctranslate2 ? "decoder/projection/weight" : "proj_out.weight",
          .presence = config.tie_word_embeddings ? kOptional : kRequired};
}

std::vector<ParameterSpec> plain_table(const Config& config, Spelling spelling) {
  std::vector<ParameterSpec> specs;
  const Side encoder{"encoder", config.encoder_layers, config.encoder_ffn_dim};
  const Side decoder{"decoder", config.decoder_layers, config.decoder_ffn_dim};
  add_rows(specs, config, encoder, 0, spelling, kEncoder);
  for (int layer = 0; layer < encoder.layers; ++layer) {
    add_rows(specs, config, encoder, layer, spelling, kSelfAttention);
    add_rows(specs, config, encoder, layer, spelling, kFeedForward);
  }
  add_rows(specs, config, decoder, 0, spelling, kDecoder);
  for (int layer = 0; layer < decoder.layers; ++layer) {
    add_rows(specs, config, decoder, layer, spelling, kSelfAttention);
    add_rows(specs, config, decoder, layer, spelling, kCrossAttention);
    add_rows(specs, config, decoder, layer, spelling, kFeedForward);
  }
  specs.push_back(head(config, spelling));
  return specs;
}

void append(std::vector<ParameterSpec>& specs, std::vector<ParameterSpec> more) {
  std::ranges::move(more, std::back_inserter(specs));
}

std::vector<ParameterSpec> native_table(const Config& config,
                                        const quant::QuantizationSpec* quantization) {
  std::map<std::string, std::string> layer_of;  // a tensor's layer, for tensors that layers replace
  std::vector<ParameterSpec> specs;
  const auto scheme_of = [&](const std::string& path) {
    return quantization == nullptr ? nullptr : quantization->find(path);
  };
  for (const LinearShape& shape : linear_shapes(config)) {
    const std::string& path = shape.spec.path;
    for (const std::string& part : shape.spec.parts) {
      for (const char* suffix : {".weight", ".bias"}) layer_of[part + suffix] = path;
    }
    layer_of[path + ".weight"] = layer_of[path + ".bias"] = path;
    const Shape weight = {shape.out_features, shape.in_features};
    if (const auto* layer = scheme_of(path)) {
      append(specs, layers::slot_specs(path, *layer, weight, shape.in_features));
    } else {
      specs.push_back({.name = path + ".weight", .shape = weight, .stored = path + ".weight"});
    }
    specs.push_back({.name = path + ".bias", .shape = {shape.out_features}, .stored = path + ".bias"});
  }
  for (ParameterSpec& spec : plain_table(config, Spelling::hugging_face)) {
    if (layer_of.contains(spec.name)) continue;
    const std::string path = spec.name.substr(0, spec.name.rfind('.'));
    const auto* layer = scheme_of(path);
    if (layer != nullptr && spec.name == path + ".weight") {
      // A convolution [C_out, C_in, 3], or an output head that is not tied.
      const Shape& plain = spec.shape;
      const Shape weight = plain.rank() == 3 ? Shape{plain[0], plain[2], plain[1]} : plain;
      append(specs, layers::slot_specs(path, *layer, weight, plain[1]));
    } else {
      specs.push_back(std::move(spec));
    }
  }
  return specs;
}

}  // namespace

Spelling spelling_of(const Checkpoint& checkpoint) {
  if (checkpoint.container == "native") return Spelling::native;
  if (checkpoint.container == "ctranslate2") return Spelling::ctranslate2;
  if (checkpoint.container != "huggingface") return Spelling::openai;
  return checkpoint.tensors.tensors.contains("encoder.conv1.weight") ? Spelling::hugging_face_bare
                                                                     : Spelling::hugging_face;
}

std::vector<ParameterSpec> weight_table(const Config& config, Spelling spelling,
                                        const quant::QuantizationSpec* quantization) {
  if (spelling == Spelling::native) return native_table(config, quantization);
  return plain_table(config, spelling);
}

}  // namespace oasr::models::whisper
