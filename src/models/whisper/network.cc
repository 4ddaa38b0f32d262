#include "models/whisper/network.h"

#include "models/whisper/weight_table.h"

namespace oasr::models::whisper {
namespace {

// Numbers of a model of these dimensions, whatever a container adds to them (scales, zero biases, a
// second copy of a tied head).
std::int64_t parameter_count(const Config& config) {
  std::int64_t count = 0;
  for (const layers::ParameterSpec& spec : weight_table(config, Spelling::hugging_face)) {
    if (spec.presence == layers::ParameterSpec::Presence::required) count += spec.shape.elements();
  }
  return count;
}

}  // namespace

Result<std::shared_ptr<const Network>> Network::load(const Config& config,
                                                     const Checkpoint& checkpoint,
                                                     const layers::WeightOptions& options) {
  const auto specs = weight_table(config, spelling_of(checkpoint),
                                  options.stored_quantized ? options.quantization : nullptr);
  auto parameters = layers::Parameters::match(checkpoint.tensors, specs);
  if (!parameters) {
    Error error = std::move(parameters).error();
    error.where = checkpoint.path.string();
    return unexpected(std::move(error));
  }
  layers::release_as_consumed(*parameters, checkpoint.tensors);
  const bool repeats_head = config.tie_word_embeddings && parameters->has("proj_out.weight");
  auto encoder = TRY(Encoder::load(config, *parameters, options));
  auto decoder = TRY(Decoder::load(config, *parameters, options));
  auto network = std::make_shared<Network>(
      Network{.config = config,
              .encoder = std::move(encoder),
              .decoder = std::move(decoder),
              .layers = {},
              .parameters = parameter_count(config),
              .repeats_tied_head = repeats_head});
  network->encoder.list(network->layers);
  network->decoder.list(network->layers);
  return std::shared_ptr<const Network>(std::move(network));
}

}  // namespace oasr::models::whisper
