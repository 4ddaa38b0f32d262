// The weights of a U2 or U2++ Conformer, without a tokenizer.
#pragma once

#include <memory>
#include <optional>

#include "models/conformer/decoder.h"
#include "models/conformer/encoder.h"
#include "models/conformer/subsampling.h"

namespace oasr::models::conformer {

// Immutable after load; shared by all states.
struct Network {
  // Matches the tensors strictly with the dimensions, and packs them.
  static Result<std::shared_ptr<const Network>> load(const Config& config, const Checkpoint& checkpoint,
                                                     const layers::WeightOptions& options);

  Config config;
  Subsampling embed;
  Encoder encoder;
  layers::Linear ctc_lo;
  std::optional<Decoder> left, right;
  layers::LayerList layers;           // of all; a network does not move
  std::int64_t parameters = 0;
  std::vector<std::string> dropped;   // tensors of the checkpoint that are not used
};

}  // namespace oasr::models::conformer
