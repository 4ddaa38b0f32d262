// The Conformer's matrices and what its structure allows, as data.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "layers/linear.h"
#include "models/conformer/config.h"
#include "quant/layout.h"
#include "quant/selection.h"

namespace oasr::models::conformer {

// A matrix of the model and its size.
struct LinearShape {
  layers::LinearSpec spec;
  std::int64_t in_features = 0, out_features = 0;
  quant::QuantKind kind = quant::QuantKind::linear;
  std::string not_quantizable = {};  // why it stays at full precision
};
// All of them, in the order of the forward pass.
std::vector<LinearShape> linear_shapes(const Config& config);

// The spec of the product at `path`; it must be one of linear_shapes().
layers::LinearSpec linear_spec(const Config& config, const std::string& path);

// All layers that hold a matrix, for selection: the subsampling's convolutions and the products.
std::vector<quant::LayerFacts> layer_facts(const Config& config);

// Where scales can be absorbed and which layer can write the next one's 8-bit input.
quant::QuantLayout quantization_layout(const Config& config);

// The paths of the blocks: "encoder.encoders.3", "decoder.left_decoder.decoders.0".
std::string encoder_block(int block);
std::string decoder_block(bool left, int block);

}  // namespace oasr::models::conformer
