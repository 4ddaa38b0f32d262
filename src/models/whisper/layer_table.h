// Whisper's matrices and what its structure allows, as data.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "layers/linear.h"
#include "models/whisper/config.h"
#include "quant/layout.h"
#include "quant/selection.h"

namespace oasr::models::whisper {

// The product `name` ("fc1", "self_attn.qkv_proj") of the block at `block`
// ("model.encoder.layers.0"), from the tensors that checkpoints store for it.
layers::LinearSpec linear_spec(const std::string& block, std::string_view name);

// A matrix of the model and its size.
struct LinearShape {
  layers::LinearSpec spec;
  std::int64_t in_features = 0, out_features = 0;
};
// All of them but the output head.
std::vector<LinearShape> linear_shapes(const Config& config);

// All layers that hold a matrix, for selection: convolutions, products, the head.
std::vector<quant::LayerFacts> layer_facts(const Config& config);

// Where scales can be absorbed and which layer can write the next one's 8-bit input.
quant::QuantLayout quantization_layout(const Config& config);

}  // namespace oasr::models::whisper
