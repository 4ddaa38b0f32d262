#include "models/whisper/network.h"

#include "models/whisper/weight_table.h"

namespace oasr::models::whisper {
namespace {

// Drops the pages of the checkpoint's files after every few megabytes that were packed.
std::function<void(std::size_t)> release_now_and_then(const StateDict& tensors) {
  constexpr std::size_t kEvery = std::size_t{8} << 20;
  return [&tensors, waiting = std::size_t{0}](std::size_t bytes) mutable {
    waiting += bytes;
    if (waiting < kEvery) return;
    waiting = 0;
    tensors.release_pages();
  };
}

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
  parameters->on_consumed(release_now_and_then(checkpoint.tensors));
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
