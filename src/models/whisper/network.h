// Whisper's weights and forward passes, without a tokenizer.
#pragma once

#include <memory>

#include "models/whisper/decoder.h"
#include "models/whisper/encoder.h"

namespace oasr::models::whisper {

// Immutable after load; shared by all states.
struct Network {
  // Matches the tensors strictly with the dimensions, and packs them.
  static Result<std::shared_ptr<const Network>> load(const Config& config,
                                                     const Checkpoint& checkpoint,
                                                     const layers::WeightOptions& options);

  Config config;
  Encoder encoder;
  Decoder decoder;
  layers::LayerList layers;        // of the two; a network does not move
  std::int64_t parameters = 0;     // numbers of the model, a tied head counted once
  bool repeats_tied_head = false;  // the checkpoint also has the head that is tied
};

}  // namespace oasr::models::whisper
