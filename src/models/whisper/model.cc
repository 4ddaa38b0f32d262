#include "models/whisper/model.h"

#include "kernels/attention/op.h"
#include "kernels/lane_choice.h"
#include "kernels/norm/op.h"
#include "models/whisper/layer_table.h"
#include "models/whisper/state.h"
#include "models/whisper/tokens.h"
#include "text/tiktoken.h"

namespace oasr::models::whisper {
namespace {

// Cross-attention keys and values: float32 keeps the logits as exact as full-precision weights allow;
// beside int8 weights float16 costs nothing that shows, and a step reads half the bytes.
DType cross_storage(const ModelOptions& options) {
  const bool quantized = options.quantization != nullptr && !options.quantization->empty();
  return quantized ? DType::f16 : DType::f32;
}

// The tokenizer of the checkpoint; OpenAI's checkpoints have none and mean the ranks that come with
// the library. Ranks know no special tokens: Whisper's follow the last one.
Result<std::shared_ptr<const Tokenizer>> build_tokenizer(const Checkpoint& checkpoint,
                                                         const Config& config) {
  const TokenizerSource& source = checkpoint.tokenizer;
  const auto special_tokens = whisper_special_tokens(config.vocab_size);
  if (source.kind == "none" && checkpoint.origin() == "openai") {
    const bool multilingual = config.vocab_size > kEnglishVocabulary;
    return make_tokenizer(bundled_whisper_ranks(multilingual), special_tokens);
  }
  if (source.kind == "none") {
    return unexpected(ErrorCode::not_found, "has no tokenizer", checkpoint.path.string(),
                      "put the tokenizer.json of the same repository into the folder");
  }
  if (source.kind == "ranks" || source.kind == "vocabulary") {
    return make_tokenizer(source, special_tokens);
  }
  return make_tokenizer(source);
}

Status check_front_end(const Config& config) {
  if (config.num_mel_bins == 80 || config.num_mel_bins == 128) return {};
  return unexpected(ErrorCode::unsupported,
                    std::to_string(config.num_mel_bins) + " mel bins; Whisper has 80 or 128");
}

}  // namespace

Result<std::vector<quant::LayerFacts>> layer_facts_of(const Checkpoint& checkpoint) {
  return layer_facts(TRY(read_config(checkpoint)));
}

Result<quant::QuantLayout> layout_of(const Checkpoint& checkpoint) {
  return quantization_layout(TRY(read_config(checkpoint)));
}

Result<std::shared_ptr<const SpeechModel>> Model::load(const Checkpoint& checkpoint,
                                                       const ModelOptions& options,
                                                       const ExecContext& context) {
  const Config config = TRY(read_config(checkpoint));
  TRY(check_front_end(config));
  TRY(kernels::check_encoder_heads(context, config.encoder_head_dim()));
  std::shared_ptr<Model> model(new Model());
  model->tokenizer_ = TRY(build_tokenizer(checkpoint, config));
  model->tokens_ = TRY(read_tokens(checkpoint, config, *model->tokenizer_));
  model->multilingual_ = !model->tokens_.languages.empty();
  model->network_ = TRY(Network::load(config, checkpoint, options));
  model->cross_storage_ = cross_storage(options);
  model->describe(checkpoint, context);
  return std::shared_ptr<const SpeechModel>(std::move(model));
}

void Model::describe(const Checkpoint& checkpoint, const ExecContext& context) {
  const KnownSize* size = known_size(network_->config, multilingual_);
  info_.architecture = "whisper";
  info_.size_name = size != nullptr ? std::string(size->name) : std::string();
  info_.parameters = network_->parameters;
  info_.weight_dtype = network_->decoder.weight_dtype();
  info_.weight_bytes = network_->layers.weight_bytes(context.isa);
  info_.kv_storage = cross_storage_;
  for (const auto& [code, id] : tokens_.languages) info_.languages.push_back(code);
  if (!multilingual_) info_.languages.push_back("en");
  const auto name = [&](const auto& lane) {
    return context.gpu != nullptr ? "cuda" : kernels::lane_name(lane, context.isa);
  };
  info_.lanes["linear"] = name(kernels::linear_lane(context.isa));
  info_.lanes["attention"] = name(kernels::attention_lane(context.isa));
  info_.lanes["layer_norm"] = name(kernels::layer_norm_lane(context.isa));
  info_.notes = checkpoint.notes;
  if (network_->config.tie_word_embeddings) {
    info_.notes.push_back(network_->repeats_tied_head
                              ? "the output head is tied to the token embedding; proj_out is not read"
                              : "the output head is tied to the token embedding");
  }
}

Result<std::unique_ptr<AedState>> Model::new_state(ExecContext context, int windows,
                                                   int rows) const {
  if (windows < 1 || rows < 1) {
    return unexpected(ErrorCode::invalid_argument, "a state needs at least one window and one row");
  }
  const StateOptions options{.windows = windows,
                             .rows = rows,
                             .cross_storage = cross_storage_,
                             .alignment_heads = tokens_.alignment_heads};
  if (context.gpu != nullptr) {
    context.gpu->forget();
    TRY(check_memory(network_->config, options, context.gpu->free_bytes()));
  }
  return std::unique_ptr<AedState>(std::make_unique<State>(network_, context, options));
}

}  // namespace oasr::models::whisper
