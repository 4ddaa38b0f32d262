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

}  // namespace

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
  parameters->on_consumed(release_now_and_then(checkpoint.tensors));
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
