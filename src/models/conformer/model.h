// A WeNet U2 or U2++ Conformer as a SpeechModel.
#pragma once

#include <memory>
#include <string>

#include "models/conformer/network.h"
#include "models/registry.h"
#include "models/speech_model.h"

namespace oasr::models::conformer {

// layer_table.h for a checkpoint that is_conformer().
Result<std::vector<quant::LayerFacts>> layer_facts_of(const Checkpoint& checkpoint);
Result<quant::QuantLayout> layout_of(const Checkpoint& checkpoint);

class Model final : public CtcModel {
 public:
  static Result<std::shared_ptr<const SpeechModel>> load(const Checkpoint& checkpoint, const ModelOptions& options,
                                                         const ExecContext& context);

  const ModelInfo& info() const override { return info_; }
  const layers::LayerList& layers() const override { return network_->layers; }
  const Tokenizer& tokenizer() const override { return *tokenizer_; }
  const FbankOptions& front_end() const override { return network_->config.features; }
  const CtcTokens& tokens() const override { return tokens_; }
  int vocabulary() const override { return network_->config.output_dim; }
  int subsampling_rate() const override { return network_->config.subsampling_rate(); }
  int right_context() const override { return network_->config.right_context(); }
  bool has_decoder() const override { return network_->left.has_value(); }
  bool has_right_to_left() const override { return network_->right.has_value(); }
  double reverse_weight() const override { return network_->config.reverse_weight; }
  std::string streaming_refusal() const override;
  Result<std::unique_ptr<CtcState>> new_state(ExecContext context) const override;
  const Network& network() const { return *network_; }  // for benchmarks of its parts

 private:
  Model() = default;
  void describe(const Checkpoint& checkpoint, const ExecContext& context);

  ModelInfo info_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<const Network> network_;
  CtcTokens tokens_;
};

}  // namespace oasr::models::conformer
