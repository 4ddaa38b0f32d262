#include "models/whisper/config.h"

#include "base/json.h"

namespace oasr::models::whisper {
namespace {

// An integer of a configuration, bounded so that hostile sizes fail here and not in an allocation.
struct IntegerKey {
  std::string_view key;
  int Config::* member;
  int maximum;
};

constexpr int kMaxLayers = 256;
constexpr int kMaxWidth = 1 << 16;
constexpr int kMaxVocabulary = 1 << 20;

constexpr IntegerKey kHuggingFaceKeys[] = {
    {"d_model", &Config::d_model, kMaxWidth},
    {"encoder_layers", &Config::encoder_layers, kMaxLayers},
    {"encoder_attention_heads", &Config::encoder_attention_heads, kMaxWidth},
    {"encoder_ffn_dim", &Config::encoder_ffn_dim, kMaxWidth},
    {"decoder_layers", &Config::decoder_layers, kMaxLayers},
    {"decoder_attention_heads", &Config::decoder_attention_heads, kMaxWidth},
    {"decoder_ffn_dim", &Config::decoder_ffn_dim, kMaxWidth},
    {"vocab_size", &Config::vocab_size, kMaxVocabulary},
    {"num_mel_bins", &Config::num_mel_bins, kMaxWidth},
    {"max_source_positions", &Config::max_source_positions, kMaxWidth},
    {"max_target_positions", &Config::max_target_positions, kMaxWidth},
};

// OpenAI's dims, which the readers of the other containers give too. Encoder and decoder are equally
// wide, feed-forward layers four times as wide.
constexpr IntegerKey kOpenAiKeys[] = {
    {"n_audio_state", &Config::d_model, kMaxWidth},
    {"n_audio_layer", &Config::encoder_layers, kMaxLayers},
    {"n_audio_head", &Config::encoder_attention_heads, kMaxWidth},
    {"n_text_layer", &Config::decoder_layers, kMaxLayers},
    {"n_text_head", &Config::decoder_attention_heads, kMaxWidth},
    {"n_vocab", &Config::vocab_size, kMaxVocabulary},
    {"n_mels", &Config::num_mel_bins, kMaxWidth},
    {"n_audio_ctx", &Config::max_source_positions, kMaxWidth},
    {"n_text_ctx", &Config::max_target_positions, kMaxWidth},
};

Result<int> integer(const Json& document, std::string_view key, int maximum,
                    std::string_view where) {
  const auto found = document.find(key);
  if (found == document.end()) {
    return unexpected(ErrorCode::bad_checkpoint, "has no '" + std::string(key) + "'",
                      std::string(where));
  }
  const bool fits = found->is_number_integer() && *found >= 1 && *found <= maximum;
  if (!fits) {
    return unexpected(ErrorCode::bad_checkpoint,
                      "'" + std::string(key) + "' must be an integer from 1 to " +
                          std::to_string(maximum) + ", but is " + found->dump(),
                      std::string(where));
  }
  return found->get<int>();
}

Result<Json> document(const Checkpoint& checkpoint, const std::string& name) {
  const auto found = checkpoint.documents.find(name);
  if (found == checkpoint.documents.end()) {
    return unexpected(ErrorCode::bad_checkpoint, "has no " + name, checkpoint.path.string());
  }
  Json parsed = TRY(parse_json(found->second, name));
  if (!parsed.is_object()) {
    return unexpected(ErrorCode::bad_checkpoint, "is not a JSON object", name);
  }
  return parsed;
}

Result<Config> from_hugging_face(const Checkpoint& checkpoint) {
  const Json json = TRY(document(checkpoint, "config.json"));
  Config config;
  for (const IntegerKey& row : kHuggingFaceKeys) {
    config.*row.member = TRY(integer(json, row.key, row.maximum, "config.json"));
  }
  if (json.value("activation_function", Json("gelu")) != Json("gelu")) {
    return unexpected(ErrorCode::unsupported,
                      "activation_function " + json["activation_function"].dump() +
                          " is not served; Whisper has \"gelu\"",
                      "config.json");
  }
  if (json.value("scale_embedding", Json(false)) != Json(false)) {
    return unexpected(ErrorCode::unsupported, "scale_embedding is not served", "config.json");
  }
  config.tie_word_embeddings = json.value("tie_word_embeddings", Json(true)) != Json(false);
  return config;
}

Result<Config> from_dims(const Checkpoint& checkpoint) {
  const Json json = TRY(document(checkpoint, "dims"));
  Config config;
  for (const IntegerKey& row : kOpenAiKeys) {
    config.*row.member = TRY(integer(json, row.key, row.maximum, "dims"));
  }
  const int text_state = TRY(integer(json, "n_text_state", kMaxWidth, "dims"));
  if (text_state != config.d_model) {
    return unexpected(ErrorCode::unsupported, "n_text_state differs from n_audio_state", "dims");
  }
  config.encoder_ffn_dim = config.decoder_ffn_dim = 4 * config.d_model;
  return config;
}

// Attributes of a CTranslate2 Transformer that must have Whisper's value when they are there.
struct FixedAttribute {
  std::string_view name;
  int value;
};
constexpr FixedAttribute kCTranslate2Attributes[] = {
    {"decoder/activation", 3},  // exact GELU
    {"decoder/alibi", 0},
    {"decoder/pre_norm", 1},
    {"decoder/scale_embeddings", 0},
    {"decoder/start_from_zero_embedding", 0},
};

Status check_attributes(const Checkpoint& checkpoint) {
  if (!checkpoint.documents.contains("scalars")) return {};
  const Json scalars = TRY(document(checkpoint, "scalars"));
  for (const FixedAttribute& row : kCTranslate2Attributes) {
    const auto found = scalars.find(row.name);
    if (found == scalars.end() || *found == row.value) continue;
    return unexpected(ErrorCode::unsupported,
                      "is " + found->dump() + "; Whisper has " + std::to_string(row.value),
                      std::string(row.name));
  }
  return {};
}

Status check(const Config& config) {
  const auto refuse = [](std::string what) {
    return unexpected(ErrorCode::unsupported, std::move(what));
  };
  for (const auto& [heads, side] : {std::pair{config.encoder_attention_heads, "encoder"},
                                    std::pair{config.decoder_attention_heads, "decoder"}}) {
    if (heads < 1 || config.d_model % heads != 0 || config.d_model / heads % 8 != 0) {
      return refuse("d_model " + std::to_string(config.d_model) + " in " + std::to_string(heads) +
                    " " + side + " heads is not served: heads must be a multiple of 8 wide");
    }
  }
  // Every published Whisper has heads of 64; a wrong number of heads would load and talk nonsense.
  constexpr int kHead = 64, kSmallestPublished = 384;
  if (config.d_model >= kSmallestPublished && (config.encoder_attention_heads * kHead != config.d_model ||
                                               config.decoder_attention_heads * kHead != config.d_model)) {
    return refuse("d_model " + std::to_string(config.d_model) + " with " +
                  std::to_string(config.encoder_attention_heads) + " encoder and " +
                  std::to_string(config.decoder_attention_heads) +
                  " decoder heads is not served: Whisper's heads are 64 wide");
  }
  return {};
}

// What Whisper's front end is, where preprocessor_config.json says it.
Status check_preprocessor(const Checkpoint& checkpoint, const Config& config) {
  constexpr const char* kName = "preprocessor_config.json";
  if (!checkpoint.documents.contains(kName)) return {};
  const Json json = TRY(document(checkpoint, kName));
  for (const auto& [key, value] : {std::pair{"feature_size", config.num_mel_bins},
                                   std::pair{"sampling_rate", 16000}, std::pair{"hop_length", 160},
                                   std::pair{"n_fft", 400}, std::pair{"chunk_length", 30}}) {
    const auto found = json.find(key);
    if (found == json.end() || *found == value) continue;
    return unexpected(ErrorCode::unsupported,
                      std::string(key) + " is " + found->dump() + " where this model has " +
                          std::to_string(value),
                      kName);
  }
  return {};
}

}  // namespace

bool is_whisper(const Checkpoint& checkpoint) {
  if (!checkpoint.architecture.empty()) return checkpoint.architecture == "whisper";
  if (checkpoint.origin() == "huggingface") {
    const auto json = document(checkpoint, "config.json");
    return json && json->value("model_type", Json()) == Json("whisper");
  }
  return checkpoint.documents.contains("dims");
}

Result<Config> read_config(const Checkpoint& checkpoint) {
  const bool hugging_face = checkpoint.origin() == "huggingface";
  const Config config = hugging_face ? TRY(from_hugging_face(checkpoint)) : TRY(from_dims(checkpoint));
  TRY(check_attributes(checkpoint));
  TRY(check(config));
  TRY(check_preprocessor(checkpoint, config));
  return config;
}

}  // namespace oasr::models::whisper
