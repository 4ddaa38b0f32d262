#include "models/conformer/weight_table.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

#include "base/located.h"
#include "models/conformer/layer_table.h"

namespace oasr::models::conformer {
namespace {

using layers::ParameterSpec;
using Presence = ParameterSpec::Presence;

// How names are spelled in the checkpoint at hand.
struct Spelling {
  bool native = false;
  bool plain_decoder = false;  // "decoder.embed…" of a decoder without a second direction

  std::string operator()(std::string name) const {
    if (native) return name;
    replace(name, "encoder.embed.convs.0", "encoder.embed.conv.0");
    replace(name, "encoder.embed.convs.1", "encoder.embed.conv.2");
    replace(name, "encoder.embed.convs.2", "encoder.embed.conv.4");
    replace(name, ".norm_activation.", ".norm.");
    if (plain_decoder) replace(name, "decoder.left_decoder.", "decoder.");
    return name;
  }

 private:
  static void replace(std::string& text, std::string_view from, std::string_view to) {
    if (const auto at = text.find(from); at != std::string::npos) text.replace(at, from.size(), to);
  }
};

class Table {
 public:
  Table(const Config& config, const Spelling& spelling, const quant::QuantizationSpec* quantization)
      : config_(config), spelling_(spelling), quantization_(quantization) {}

  std::vector<ParameterSpec> make() {
    const std::int64_t d = config_.encoder.output_size;
    add("encoder.global_cmvn.mean", {config_.input_dim}, Presence::optional);
    add("encoder.global_cmvn.istd", {config_.input_dim}, Presence::optional);
    for (std::size_t stage = 0; stage < config_.encoder.subsampling.size(); ++stage) {
      const std::int64_t kernel = config_.encoder.subsampling[stage].kernel, in = stage == 0 ? 1 : d;
      const std::string path = "encoder.embed.convs." + std::to_string(stage);
      const quant::QuantizedLayer* layer = scheme_of(path);
      if (layer != nullptr) {
        add_slots(path, *layer, {d, kernel, kernel, in}, in);
      } else {
        add(path + ".weight", {d, in, kernel, kernel});
      }
      add(path + ".bias", {d});
    }
    for (const LinearShape& shape : linear_shapes(config_)) add_product(shape);
    for (int block = 0; block < config_.encoder.num_blocks; ++block) add_encoder_block(encoder_block(block));
    add_norm("encoder.after_norm");
    if (config_.decoder) {
      add_decoder(true, config_.decoder->num_blocks);
      add_decoder(false, config_.decoder->r_num_blocks);
    }
    return std::move(specs_);
  }

 private:
  void add(const std::string& name, Shape shape, Presence presence = Presence::required) {
    specs_.push_back({.name = name, .shape = shape, .stored = spelling_(name), .presence = presence});
  }
  void add_norm(const std::string& path) {
    add(path + ".weight", {config_.encoder.output_size});
    add(path + ".bias", {config_.encoder.output_size});
  }
  const quant::QuantizedLayer* scheme_of(const std::string& path) const {
    return spelling_.native && quantization_ != nullptr ? quantization_->find(path) : nullptr;
  }

  void add_slots(const std::string& path, const quant::QuantizedLayer& layer, const Shape& weight,
                 std::int64_t columns) {
    std::ranges::move(layers::slot_specs(path, layer, weight, columns), std::back_inserter(specs_));
  }

  void add_product(const LinearShape& shape) {
    const std::string& path = shape.spec.path;
    const bool biased = !path.ends_with(".linear_pos");
    if (!spelling_.native && !shape.spec.parts.empty()) {
      const auto parts = static_cast<std::int64_t>(shape.spec.parts.size());
      for (const std::string& part : shape.spec.parts) {
        add(part + ".weight", {shape.out_features / parts, shape.in_features});
        if (biased) add(part + ".bias", {shape.out_features / parts});
      }
      return;
    }
    const Shape weight = {shape.out_features, shape.in_features};
    if (const quant::QuantizedLayer* layer = scheme_of(path)) {
      add_slots(path, *layer, weight, shape.in_features);
    } else {
      add(path + ".weight", weight);
    }
    if (biased) add(path + ".bias", {shape.out_features});
  }

  void add_encoder_block(const std::string& path) {
    const Config::Encoder& encoder = config_.encoder;
    const std::int64_t d = encoder.output_size;
    for (const char* norm : {".norm_ff_macaron", ".norm_mha", ".norm_conv", ".norm_ff", ".norm_final"}) {
      add_norm(path + norm);
    }
    for (const char* bias : {".self_attn.pos_bias_u", ".self_attn.pos_bias_v"}) {
      add(path + bias, {encoder.attention_heads, encoder.head_dim()});
    }
    add(path + ".conv_module.depthwise_conv.weight", {d, 1, encoder.cnn_module_kernel});
    add(path + ".conv_module.depthwise_conv.bias", {d});
    if (!encoder.batch_norm) add_norm(path + ".conv_module.norm_activation");
  }

  void add_decoder(bool left, int blocks) {
    if (blocks == 0) return;
    const std::string path = left ? "decoder.left_decoder" : "decoder.right_decoder";
    add(path + ".embed.0.weight", {config_.output_dim, config_.encoder.output_size});
    for (int block = 0; block < blocks; ++block) {
      for (const char* norm : {".norm1", ".norm2", ".norm3"}) add_norm(decoder_block(left, block) + norm);
    }
    add_norm(path + ".after_norm");
  }

  const Config& config_;
  const Spelling& spelling_;
  const quant::QuantizationSpec* quantization_;
  std::vector<ParameterSpec> specs_;
};

Result<std::vector<double>> read_doubles(const StateDict& state, const std::string& name, std::int64_t count) {
  const StoredTensor tensor = TRY(state.find(name));
  if (tensor.shape.elements() != count) {
    return unexpected(ErrorCode::bad_checkpoint,
                      name + " has the shape " + tensor.shape.to_string() + ", not " + std::to_string(count) +
                          " numbers");
  }
  std::vector<float> values(static_cast<std::size_t>(count));
  TRY(decode_to_float(tensor, values));
  return std::vector<double>(values.begin(), values.end());
}

// Adds a float32 tensor of its own memory.
void put(StateDict& state, const std::string& name, Shape shape, std::vector<float> values) {
  auto owner = std::make_shared<const std::vector<float>>(std::move(values));
  state.tensors[name] = {.format = StorageFormat::f32, .shape = shape, .bytes = std::as_bytes(std::span(*owner)),
                         .row_scale = {}};
  state.owners.push_back(std::move(owner));
}

// y = γ (w · x + b - mean) / sqrt(var + 1e-5) + β as one convolution: w' = w · g, b' = (b - mean) · g + β
// with g = γ / sqrt(var + 1e-5), in double, rounded once.
Status fold_batch_norm(StateDict& state, const std::string& path, std::int64_t channels, std::int64_t taps) {
  const std::string norm = path + ".norm.", conv = path + ".depthwise_conv.";
  auto weight = TRY(read_doubles(state, conv + "weight", channels * taps));
  auto bias = TRY(read_doubles(state, conv + "bias", channels));
  const auto gamma = TRY(read_doubles(state, norm + "weight", channels));
  const auto beta = TRY(read_doubles(state, norm + "bias", channels));
  const auto mean = TRY(read_doubles(state, norm + "running_mean", channels));
  const auto variance = TRY(read_doubles(state, norm + "running_var", channels));
  for (std::size_t c = 0; c < gamma.size(); ++c) {
    const double gain = gamma[c] / std::sqrt(variance[c] + 1e-5);
    if (!std::isfinite(gain)) {
      return unexpected(ErrorCode::bad_checkpoint, norm + "running_var is " + std::to_string(variance[c]) +
                                                       " at channel " + std::to_string(c) + ", which is no variance");
    }
    for (std::size_t t = 0; t < static_cast<std::size_t>(taps); ++t) {
      weight[c * static_cast<std::size_t>(taps) + t] *= gain;
    }
    bias[c] = (bias[c] - mean[c]) * gain + beta[c];
  }
  put(state, conv + "weight", {channels, 1, taps}, {weight.begin(), weight.end()});
  put(state, conv + "bias", {channels}, {bias.begin(), bias.end()});
  for (const char* name : {"weight", "bias", "running_mean", "running_var", "num_batches_tracked"}) {
    state.tensors.erase(norm + name);
  }
  return {};
}

// Columns (c, f) of a row-major matrix to (f, c), in the stored format.
Status turn_columns(StateDict& state, const Config& config) {
  const std::string name = "encoder.embed.out.0.weight";
  if (const auto old = state.tensors.find("encoder.embed.linear.weight"); old != state.tensors.end()) {
    state.tensors[name] = old->second;  // conv2d6 and conv2d8 call it so
    state.tensors.erase(old);
    if (const auto bias = state.tensors.find("encoder.embed.linear.bias"); bias != state.tensors.end()) {
      state.tensors["encoder.embed.out.0.bias"] = bias->second;
      state.tensors.erase(bias);
    }
  }
  const auto found = state.tensors.find(name);
  const std::int64_t d = config.encoder.output_size, bins = config.subsampled_bins();
  if (found == state.tensors.end() || found->second.shape != Shape{d, d * bins}) return {};  // match() says it
  StoredTensor& tensor = found->second;
  const std::size_t size = tensor.bytes.size() / static_cast<std::size_t>(d * d * bins);
  auto turned = std::make_shared<std::vector<std::byte>>(tensor.bytes.size());
  for (std::int64_t row = 0; row < d; ++row) {
    for (std::int64_t c = 0; c < d; ++c) {
      for (std::int64_t f = 0; f < bins; ++f) {
        const std::int64_t to = (row * bins + f) * d + c, from = (row * d + c) * bins + f;
        std::memcpy(turned->data() + static_cast<std::size_t>(to) * size,
                    tensor.bytes.data() + static_cast<std::size_t>(from) * size, size);
      }
    }
  }
  tensor.bytes = *turned;
  state.owners.push_back(std::move(turned));
  return {};
}

// Tensors that no layer reads: tables that are computed here, and weights that WeNet creates and never
// uses (concat_linear).
bool is_dropped(const std::string& name) {
  return name.ends_with(".pe") || name.find(".concat_linear") != std::string::npos;
}

}  // namespace

Result<Weights> match_weights(const Config& config, const Checkpoint& checkpoint,
                              const quant::QuantizationSpec* quantization) {
  Weights weights{.state = checkpoint.tensors, .parameters = {}, .dropped = {}};
  Spelling spelling{.native = checkpoint.container == "native"};
  auto& tensors = weights.state.tensors;
  if (!spelling.native) {
    for (auto it = tensors.begin(); it != tensors.end();) {
      if (is_dropped(it->first)) {
        weights.dropped.push_back(it->first);
        it = tensors.erase(it);
      } else {
        ++it;
      }
    }
    spelling.plain_decoder = tensors.contains("decoder.embed.0.weight");
    TRY(turn_columns(weights.state, config));
    for (int block = 0; config.encoder.batch_norm && block < config.encoder.num_blocks; ++block) {
      TRY(located(fold_batch_norm(weights.state, encoder_block(block) + ".conv_module",
                                  config.encoder.output_size, config.encoder.cnn_module_kernel),
                  checkpoint.path.string()));
    }
  }
  const auto specs = Table(config, spelling, quantization).make();
  weights.parameters = TRY(located(layers::Parameters::match(weights.state, specs), checkpoint.path.string()));
  return weights;
}

std::vector<ParameterSpec> wenet_table(const Config& config) {
  const Spelling spelling;
  auto specs = Table(config, spelling, nullptr).make();
  if (!config.encoder.batch_norm) return specs;
  for (int block = 0; block < config.encoder.num_blocks; ++block) {  // folded by match_weights()
    for (const char* name : {"weight", "bias", "running_mean", "running_var"}) {
      const std::string stored = encoder_block(block) + ".conv_module.norm." + name;
      specs.push_back({.name = stored, .shape = {config.encoder.output_size}, .stored = stored});
    }
  }
  return specs;
}

std::int64_t parameter_count(const Config& config) {
  const Spelling spelling{.native = true};
  std::int64_t count = 0;
  for (const ParameterSpec& spec : Table(config, spelling, nullptr).make()) {
    if (spec.presence == Presence::required) count += spec.shape.elements();
  }
  return count;
}

}  // namespace oasr::models::conformer
