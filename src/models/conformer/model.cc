#include "models/conformer/model.h"

#include "base/located.h"
#include "kernels/attention/op.h"
#include "kernels/lane_choice.h"
#include "kernels/norm/op.h"
#include "models/conformer/layer_table.h"
#include "models/conformer/state.h"

namespace oasr::models::conformer {
namespace {

// A table of other units than the model's would give other words, or none, without a word about it.
Status check_units(const Tokenizer& tokenizer, const Config& config, const Checkpoint& checkpoint) {
  const auto refuse = [&](std::string what) {
    return unexpected(ErrorCode::bad_checkpoint, std::move(what), checkpoint.path.string(),
                      "take the units.txt of the same training");
  };
  if (tokenizer.size() != config.output_dim) {
    return refuse("the unit table has " + std::to_string(tokenizer.size()) + " units, the model gives " +
                  std::to_string(config.output_dim));
  }
  for (TokenId id = 0; id < config.output_dim; ++id) {
    if (tokenizer.token_bytes(id).empty()) return refuse("the unit table has no unit of id " + std::to_string(id));
  }
  const std::pair<const char*, TokenId> named[] = {
      {"<blank>", config.blank}, {"<sos/eos>", config.eos}, {"<eos>", config.eos}, {"<sos>", config.sos}};
  for (const auto& [name, id] : named) {
    const auto there = tokenizer.id_of(name);
    if (there && *there != id) {
      return refuse(std::string(name) + " is unit " + std::to_string(*there) + ", and train.yaml says " +
                    std::to_string(id));
    }
  }
  return {};
}

}  // namespace

Result<std::vector<quant::LayerFacts>> layer_facts_of(const Checkpoint& checkpoint) {
  return layer_facts(TRY(read_config(checkpoint)));
}

Result<quant::QuantLayout> layout_of(const Checkpoint& checkpoint) {
  return quantization_layout(TRY(read_config(checkpoint)));
}

Result<std::shared_ptr<const SpeechModel>> Model::load(const Checkpoint& checkpoint, const ModelOptions& options,
                                                       const ExecContext& context) {
  const Config config = TRY(read_config(checkpoint));
  TRY(located(Fbank::make(config.features), checkpoint.path.string() + ": dataset_conf.fbank_conf"));
  TRY(kernels::check_encoder_heads(context, config.encoder.head_dim()));
  std::shared_ptr<Model> model(new Model());
  model->tokenizer_ = TRY(located(make_tokenizer(checkpoint.tokenizer), checkpoint.path.string()));
  TRY(check_units(*model->tokenizer_, config, checkpoint));
  model->tokens_ = {.blank = config.blank, .sos = config.sos, .eos = config.eos};
  model->network_ = TRY(Network::load(config, checkpoint, options));
  model->describe(checkpoint, context);
  return std::shared_ptr<const SpeechModel>(std::move(model));
}

void Model::describe(const Checkpoint& checkpoint, const ExecContext& context) {
  const Config& config = network_->config;
  info_.architecture = "conformer";
  info_.size_name = std::to_string(config.encoder.num_blocks) + " blocks of " +
                    std::to_string(config.encoder.output_size);
  info_.parameters = network_->parameters;
  // The dtype of most weights: the first product of the first block, or the CTC head if that is quantized.
  info_.weight_dtype = network_->layers.embeddings.empty() ? DType::f32 : network_->layers.embeddings[0]->storage();
  info_.weight_bytes = network_->layers.weight_bytes(context.isa);
  info_.kv_storage = DType::f32;
  const auto name = [&](const auto& lane) {
    return context.gpu != nullptr ? "cuda" : kernels::lane_name(lane, context.isa);
  };
  info_.lanes["linear"] = name(kernels::linear_lane(context.isa));
  info_.lanes["attention"] = name(kernels::attention_lane(context.isa));
  info_.lanes["layer_norm"] = name(kernels::layer_norm_lane(context.isa));
  info_.notes = checkpoint.notes;
  if (!network_->dropped.empty()) {
    std::string note = std::to_string(network_->dropped.size()) + " tensors are not used: ";
    for (std::size_t i = 0; i < network_->dropped.size() && i < 4; ++i) note += (i > 0 ? ", " : "") + network_->dropped[i];
    info_.notes.push_back(note + (network_->dropped.size() > 4 ? ", …" : ""));
  }
  if (checkpoint.documents.contains("global_cmvn") &&
      checkpoint.tensors.tensors.contains("encoder.global_cmvn.mean")) {
    info_.notes.push_back("the file of global statistics is not used: the weights have them");
  }
  if (!network_->left) info_.notes.push_back("there is no attention decoder: rescoring is not served");
}

std::string Model::streaming_refusal() const {
  if (network_->config.encoder.causal) return {};
  return "its convolutions look ahead (encoder_conf.causal is false)";
}

Result<std::unique_ptr<CtcState>> Model::new_state(ExecContext context) const {
  return std::unique_ptr<CtcState>(std::make_unique<State>(network_, context));
}

}  // namespace oasr::models::conformer
