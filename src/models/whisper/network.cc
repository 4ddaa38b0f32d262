#include "models/whisper/network.h"

#include "models/whisper/weight_table.h"

namespace oasr::models::whisper {

Result<std::shared_ptr<const Network>> Network::load(const Config& config,
                                                     const Checkpoint& checkpoint,
                                                     const layers::WeightOptions& options) {
  const auto specs = weight_table(config, spelling_of(checkpoint));
  auto parameters = layers::Parameters::match(checkpoint.tensors, specs);
  if (!parameters) {
    Error error = std::move(parameters).error();
    error.where = checkpoint.path.string();
    return unexpected(std::move(error));
  }
  const bool repeats_head = config.tie_word_embeddings && parameters->has("proj_out.weight");
  auto encoder = TRY(Encoder::load(config, *parameters, options));
  auto decoder = TRY(Decoder::load(config, *parameters, options));
  const std::int64_t head = std::int64_t{config.vocab_size} * config.d_model;
  return std::make_shared<const Network>(
      Network{.config = config,
              .encoder = std::move(encoder),
              .decoder = std::move(decoder),
              .parameters = parameters->elements() - (repeats_head ? head : 0),
              .repeats_tied_head = repeats_head});
}

}  // namespace oasr::models::whisper
