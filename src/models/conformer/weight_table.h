// Every tensor of a WeNet checkpoint under the names that the layers use.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "layers/parameters.h"
#include "models/conformer/config.h"
#include "quant/spec.h"

namespace oasr::models::conformer {

// The state dict of a checkpoint in the layers' own layout, strictly matched.
struct Weights {
  StateDict state;  // keeps what was rearranged alive while layers load
  layers::Parameters parameters;
  std::vector<std::string> dropped;  // tensors that are not used: computed here, or of training only
};

// WeNet stores what this model has in other forms: three projections that become one
// (self_attn.linear_qkv), columns of the subsampling's output by channel (here by frequency band:
// [(f, c)]), and batch norm, which is folded into the depthwise convolution in double precision. A
// native checkpoint has the layers' own tensors. One bad_checkpoint error names every missing, extra
// and misshapen tensor.
Result<Weights> match_weights(const Config& config, const Checkpoint& checkpoint,
                              const quant::QuantizationSpec* quantization);

// The tensors that a WeNet checkpoint of these dimensions has, under its own names (`stored`).
std::vector<layers::ParameterSpec> wenet_table(const Config& config);

// Numbers of the model: weights and biases, statistics not counted.
std::int64_t parameter_count(const Config& config);

}  // namespace oasr::models::conformer
