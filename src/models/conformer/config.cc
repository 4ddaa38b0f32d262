#include "models/conformer/config.h"

#include <array>

#include "base/json.h"

namespace oasr::models::conformer {
namespace {

constexpr const char* kDocument = "train.yaml";

// Typed reading of one mapping, with defaults; errors name the key.
class Section {
 public:
  Section(const Json& root, const char* name) : name_(name) {
    if (root.contains(name) && root[name].is_object()) json_ = &root[name];
  }
  explicit Section(const Json& root) : json_(&root) {}

  bool has(const char* key) const { return json_ != nullptr && json_->contains(key) && !(*json_)[key].is_null(); }

  Result<int> whole(const char* key, int fallback, int least, int most) const {
    if (!has(key)) return fallback;
    const Json& value = (*json_)[key];
    if (!value.is_number_integer()) return bad(key, "is no whole number");
    const auto number = value.get<std::int64_t>();
    if (number < least || number > most) {
      return bad(key, "is " + std::to_string(number) + "; served are " + std::to_string(least) + " to " +
                          std::to_string(most));
    }
    return static_cast<int>(number);
  }
  Result<double> number(const char* key, double fallback, double least, double most) const {
    if (!has(key)) return fallback;
    const Json& value = (*json_)[key];
    if (!value.is_number() || !(value.get<double>() >= least && value.get<double>() <= most)) {
      return bad(key, "is no number from " + std::to_string(least) + " to " + std::to_string(most));
    }
    return value.get<double>();
  }
  Result<bool> flag(const char* key, bool fallback) const {
    if (!has(key)) return fallback;
    if (!(*json_)[key].is_boolean()) return bad(key, "is neither true nor false");
    return (*json_)[key].get<bool>();
  }
  Result<std::string> text(const char* key, const char* fallback) const {
    if (!has(key)) return std::string(fallback);
    if (!(*json_)[key].is_string()) return bad(key, "is no text");
    return (*json_)[key].get<std::string>();
  }
  const Json* at(const char* key) const { return has(key) ? &(*json_)[key] : nullptr; }

  Unexpected bad(const char* key, const std::string& what, ErrorCode code = ErrorCode::bad_checkpoint) const {
    return unexpected(code, name_ + (name_.empty() ? "" : ".") + key + " " + what);
  }
  // unsupported unless the text is `only`.
  Status only(const char* key, const char* fallback, const char* served) const {
    const std::string value = TRY(text(key, fallback));
    if (value == served) return {};
    return bad(key, "is \"" + value.substr(0, 40) + "\"; served is " + served, ErrorCode::unsupported);
  }
  Status must_be(const char* key, bool fallback, bool served) const {
    if (TRY(flag(key, fallback)) == served) return {};
    return bad(key, served ? "is false; served is true" : "is true; served is false", ErrorCode::unsupported);
  }

 private:
  std::string name_;
  const Json* json_ = nullptr;
};

struct InputLayer {
  std::string_view name;
  std::array<SubsamplingStage, 3> stages;
  int count;
};
constexpr InputLayer kInputLayers[] = {
    {"conv2d", {{{3, 2}, {3, 2}}}, 2},
    {"conv2d6", {{{3, 2}, {5, 3}}}, 2},
    {"conv2d8", {{{3, 2}, {3, 2}, {3, 2}}}, 3},
};

Result<std::vector<SubsamplingStage>> read_input_layer(const Section& conf) {
  const std::string name = TRY(conf.text("input_layer", "conv2d"));
  for (const InputLayer& row : kInputLayers) {
    if (row.name == name) return std::vector(row.stages.begin(), row.stages.begin() + row.count);
  }
  return conf.bad("input_layer", "is \"" + name.substr(0, 40) + "\"; served are conv2d, conv2d6, conv2d8",
                  ErrorCode::unsupported);
}

Result<kernels::Activation> read_activation(const Section& conf, const char* fallback) {
  const std::string name = TRY(conf.text("activation_type", fallback));
  if (name == "swish" || name == "silu") return kernels::Activation::swish;
  if (name == "relu") return kernels::Activation::relu;
  if (name == "gelu") return kernels::Activation::gelu;
  return conf.bad("activation_type", "is \"" + name.substr(0, 40) + "\"; served are swish, relu, gelu",
                  ErrorCode::unsupported);
}

// Switches of WeNet whose other position is another network.
Status check_switches(const Section& conf) {
  TRY(conf.must_be("normalize_before", true, true));
  TRY(conf.must_be("concat_after", false, false));
  TRY(conf.must_be("macaron_style", true, true));
  TRY(conf.must_be("use_cnn_module", true, true));
  TRY(conf.only("pos_enc_layer_type", "rel_pos", "rel_pos"));
  TRY(conf.only("selfattention_layer_type", "rel_selfattn", "rel_selfattn"));
  TRY(conf.only("layer_norm_type", "layer_norm", "layer_norm"));
  const double epsilon = TRY(conf.number("norm_eps", 1e-5, 0, 1));
  if (epsilon == 1e-5) return {};
  return conf.bad("norm_eps", "is not 1e-5", ErrorCode::unsupported);
}

Result<Config::Encoder> read_encoder(const Json& root) {
  const Section conf(root, "encoder_conf");
  TRY(check_switches(conf));
  Config::Encoder encoder;
  encoder.output_size = TRY(conf.whole("output_size", 256, 8, 8192));
  encoder.num_blocks = TRY(conf.whole("num_blocks", 6, 1, 256));
  encoder.attention_heads = TRY(conf.whole("attention_heads", 4, 1, 256));
  encoder.linear_units = TRY(conf.whole("linear_units", 2048, 1, 65536));
  encoder.cnn_module_kernel = TRY(conf.whole("cnn_module_kernel", 15, 1, 255));
  encoder.causal = TRY(conf.flag("causal", false));
  const std::string norm = TRY(conf.text("cnn_module_norm", "batch_norm"));
  if (norm != "batch_norm" && norm != "layer_norm") {
    return conf.bad("cnn_module_norm", "is \"" + norm.substr(0, 40) + "\"; served are batch_norm, layer_norm",
                    ErrorCode::unsupported);
  }
  encoder.batch_norm = norm == "batch_norm";
  encoder.activation = TRY(read_activation(conf, "swish"));
  encoder.subsampling = TRY(read_input_layer(conf));
  encoder.dynamic_chunk = TRY(conf.flag("use_dynamic_chunk", false));
  encoder.static_chunk_size = TRY(conf.whole("static_chunk_size", 0, -1, 100000));
  if (encoder.output_size % encoder.attention_heads != 0 || encoder.head_dim() % 8 != 0) {
    return conf.bad("attention_heads", "does not divide output_size into heads of a multiple of 8");
  }
  if (!encoder.causal && encoder.cnn_module_kernel % 2 == 0) {
    return conf.bad("cnn_module_kernel", "is even, and the convolution is not causal");
  }
  return encoder;
}

Result<std::optional<Config::Decoder>> read_decoder(const Json& root, int output_size) {
  const std::string kind = TRY(Section(root).text("decoder", "bitransformer"));
  if (kind != "transformer" && kind != "bitransformer") {
    return Section(root).bad("decoder", "is \"" + kind.substr(0, 40) + "\"; served are transformer, bitransformer",
                             ErrorCode::unsupported);
  }
  const Section conf(root, "decoder_conf");
  Config::Decoder decoder;
  decoder.num_blocks = TRY(conf.whole("num_blocks", 6, 0, 256));
  if (kind == "bitransformer") decoder.r_num_blocks = TRY(conf.whole("r_num_blocks", 0, 0, 256));
  decoder.attention_heads = TRY(conf.whole("attention_heads", 4, 1, 256));
  decoder.linear_units = TRY(conf.whole("linear_units", 2048, 1, 65536));
  decoder.activation = TRY(read_activation(conf, "relu"));
  TRY(conf.must_be("normalize_before", true, true));
  TRY(conf.must_be("use_output_layer", true, true));
  TRY(conf.only("input_layer", "embed", "embed"));
  if (output_size % decoder.attention_heads != 0 || output_size / decoder.attention_heads % 8 != 0) {
    return conf.bad("attention_heads", "does not divide the encoder's output into heads of a multiple of 8");
  }
  if (decoder.num_blocks == 0) return std::optional<Config::Decoder>();
  return std::optional(decoder);
}

Result<FbankOptions> read_features(const Json& root) {
  FbankOptions features;
  const Section dataset(root, "dataset_conf");
  if (dataset.has("mfcc_conf") && !dataset.has("fbank_conf")) {
    return dataset.bad("mfcc_conf", "asks for MFCC features; served is fbank_conf", ErrorCode::unsupported);
  }
  if (dataset.has("feats_type")) TRY(dataset.only("feats_type", "fbank", "fbank"));
  if (const Json* conf = dataset.at("resample_conf"); conf != nullptr && conf->is_object()) {
    features.sample_rate = TRY(Section(*conf).whole("resample_rate", 16000, 2000, 192000));
  }
  if (const Json* conf = dataset.at("fbank_conf"); conf != nullptr && conf->is_object()) {
    const Section fbank(*conf);
    features.num_mel_bins = TRY(fbank.whole("num_mel_bins", 80, 1, 512));
    features.frame_length_ms = TRY(fbank.number("frame_length", 25, 1, 1000));
    features.frame_shift_ms = TRY(fbank.number("frame_shift", 10, 1, 1000));
  }
  return features;
}

// A special id: tokenizer_conf.special_tokens by any of its spellings.
Result<int> special(const Json& root, std::initializer_list<const char*> names, int fallback, int vocabulary) {
  const Section conf(root, "tokenizer_conf");
  const Json* table = conf.at("special_tokens");
  if (table == nullptr || !table->is_object()) return fallback;
  for (const char* name : names) {
    if (table->contains(name)) return Section(*table).whole(name, fallback, 0, vocabulary - 1);
  }
  return fallback;
}

// A section that is no mapping would be read as one that is not there.
Status check_sections(const Json& root) {
  for (const char* name : {"encoder_conf", "decoder_conf", "ctc_conf", "model_conf", "dataset_conf", "tokenizer_conf"}) {
    if (!root.contains(name) || root[name].is_null() || root[name].is_object()) continue;
    return Section(root).bad(name, "is not a mapping of names to values");
  }
  return {};
}

Result<Config> read(const Json& root) {
  TRY(check_sections(root));
  const std::string encoder = TRY(Section(root).text("encoder", "conformer"));
  if (encoder != "conformer") {
    return Section(root).bad("encoder", "is \"" + encoder.substr(0, 40) + "\"; served is conformer",
                             ErrorCode::unsupported);
  }
  Config config;
  config.encoder = TRY(read_encoder(root));
  config.decoder = TRY(read_decoder(root, config.encoder.output_size));
  config.features = TRY(read_features(root));
  const Section top(root);
  config.input_dim = TRY(top.whole("input_dim", config.features.num_mel_bins, 1, 512));
  if (config.input_dim != config.features.num_mel_bins) {
    return top.bad("input_dim", "differs from dataset_conf.fbank_conf.num_mel_bins");
  }
  if (!top.has("output_dim")) return top.bad("output_dim", "is missing: it is the size of units.txt");
  config.output_dim = TRY(top.whole("output_dim", 0, 2, 1 << 20));
  if (config.subsampled_bins() < 1) return top.bad("input_dim", "is too small for the convolutions");
  config.blank = TRY(Section(root, "ctc_conf").whole("ctc_blank_id", 0, 0, config.output_dim - 1));
  const int last = config.output_dim - 1;
  config.sos = TRY(special(root, {"<sos>", "<sos/eos>", "sos"}, last, config.output_dim));
  config.eos = TRY(special(root, {"<eos>", "<sos/eos>", "eos"}, last, config.output_dim));
  const Section model(root, "model_conf");
  config.reverse_weight = TRY(model.number("reverse_weight", 0, 0, 1));
  if (config.reverse_weight > 0 && (!config.decoder || config.decoder->r_num_blocks == 0)) {
    return model.bad("reverse_weight", "is above 0, but there is no right-to-left decoder");
  }
  config.cmvn = top.has("cmvn_file") || top.has("cmvn");
  return config;
}

}  // namespace

int Config::subsampling_rate() const {
  int rate = 1;
  for (const SubsamplingStage& stage : encoder.subsampling) rate *= stage.stride;
  return rate;
}

int Config::right_context() const {
  int context = 0, rate = 1;
  for (const SubsamplingStage& stage : encoder.subsampling) {
    context += (stage.kernel - 1) * rate;
    rate *= stage.stride;
  }
  return context;
}

int Config::subsampled_bins() const {
  int bins = input_dim;
  for (const SubsamplingStage& stage : encoder.subsampling) bins = bins < stage.kernel ? 0 : (bins - stage.kernel) / stage.stride + 1;
  return bins;
}

std::int64_t Config::encoder_frames(std::int64_t frames) const {
  for (const SubsamplingStage& stage : encoder.subsampling) {
    frames = frames < stage.kernel ? 0 : (frames - stage.kernel) / stage.stride + 1;
  }
  return frames;
}

bool is_conformer(const Checkpoint& checkpoint) { return checkpoint.documents.contains(kDocument); }

Result<Config> read_config(const Checkpoint& checkpoint) {
  const auto found = checkpoint.documents.find(kDocument);
  CHECK(found != checkpoint.documents.end(), "a checkpoint that is_conformer()");
  auto config = read(TRY(parse_json(found->second, kDocument)));
  if (!config) {
    Error error = std::move(config).error();
    error.where = checkpoint.path.string() + ": " + kDocument;
    return unexpected(std::move(error));
  }
  return config;
}

}  // namespace oasr::models::conformer
