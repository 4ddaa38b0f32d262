// Whisper as a SpeechModel.
#pragma once

#include <memory>

#include "checkpoint/checkpoint.h"
#include "models/registry.h"
#include "models/speech_model.h"
#include "models/whisper/network.h"

namespace oasr::models::whisper {

// layer_table.h for a checkpoint that is_whisper().
Result<std::vector<quant::LayerFacts>> layer_facts_of(const Checkpoint& checkpoint);
Result<quant::QuantLayout> layout_of(const Checkpoint& checkpoint);

class Model final : public AedModel {
 public:
  // Dimensions, tokenizer, special ids and weights of a checkpoint that is_whisper().
  static Result<std::shared_ptr<const SpeechModel>> load(const Checkpoint& checkpoint,
                                                         const ModelOptions& options,
                                                         const ExecContext& context);

  const ModelInfo& info() const override { return info_; }
  const layers::LayerList& layers() const override { return network_->layers; }
  const Tokenizer& tokenizer() const override { return *tokenizer_; }
  int n_mels() const override { return network_->config.num_mel_bins; }
  int window_frames() const override { return network_->config.window_frames(); }
  int context_size() const override { return network_->config.max_target_positions; }
  bool multilingual() const override { return multilingual_; }
  const AedTokens& tokens() const override { return tokens_; }
  Result<std::unique_ptr<AedState>> new_state(ExecContext context, int windows,
                                              int rows) const override;

 private:
  Model() = default;
  void describe(const Checkpoint& checkpoint, const ExecContext& context);

  ModelInfo info_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<const Network> network_;
  DType cross_storage_ = DType::f32;
  AedTokens tokens_;
  bool multilingual_ = false;
};

}  // namespace oasr::models::whisper
