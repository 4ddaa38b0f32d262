#include "models/conformer/network.h"

#include "models/conformer/layer_table.h"
#include "models/conformer/weight_table.h"

namespace oasr::models::conformer {

Result<std::shared_ptr<const Network>> Network::load(const Config& config, const Checkpoint& checkpoint,
                                                     const layers::WeightOptions& options) {
  Weights weights = TRY(match_weights(config, checkpoint, options.stored_quantized ? options.quantization : nullptr));
  const layers::Parameters& parameters = weights.parameters;
  layers::release_as_consumed(weights.parameters, weights.state);
  auto embed = TRY(Subsampling::load(config, parameters, options, checkpoint));
  auto encoder = TRY(Encoder::load(config, parameters, options));
  auto ctc_lo = TRY(layers::Linear::load(parameters, linear_spec(config, "ctc.ctc_lo"), options));
  std::optional<Decoder> left, right;
  if (config.decoder) left = TRY(Decoder::load(config, true, parameters, options));
  if (config.decoder && config.decoder->r_num_blocks > 0) {
    right = TRY(Decoder::load(config, false, parameters, options));
  }
  auto network = std::make_shared<Network>(Network{.config = config,
                                                   .embed = std::move(embed),
                                                   .encoder = std::move(encoder),
                                                   .ctc_lo = std::move(ctc_lo),
                                                   .left = std::move(left),
                                                   .right = std::move(right),
                                                   .layers = {},
                                                   .parameters = parameter_count(config),
                                                   .dropped = std::move(weights.dropped)});
  network->embed.list(network->layers);
  network->encoder.list(network->layers);
  network->layers.linears.push_back(&network->ctc_lo);
  if (network->left) network->left->list(network->layers);
  if (network->right) network->right->list(network->layers);
  return std::shared_ptr<const Network>(std::move(network));
}

}  // namespace oasr::models::conformer
