// Every tensor of a Whisper checkpoint, as data: its shape and its name in each container.
#pragma once

#include <cstdint>
#include <vector>

#include "layers/parameters.h"
#include "models/whisper/config.h"
#include "quant/spec.h"

namespace oasr::models::whisper {

// How a checkpoint spells the names of its tensors.
enum class Spelling : std::uint8_t {
  hugging_face,       // "model.encoder.conv1.weight"
  hugging_face_bare,  // "encoder.conv1.weight": saved without the head
  openai,             // OpenAI and ggml
  ctranslate2,
  native,  // under the names of the model's own layers
};
Spelling spelling_of(const Checkpoint& checkpoint);

// The tensors that a checkpoint of these dimensions must have. Layers ask for them by Hugging
// Face's names ("model.encoder.layers.0.self_attn.q_proj.weight").
// Under Spelling::native products have one tensor each where other checkpoints store several, and the
// layers of `quantization` (null: none) have the tensors of their methods.
std::vector<layers::ParameterSpec> weight_table(const Config& config, Spelling spelling,
                                                const quant::QuantizationSpec* quantization = nullptr);

}  // namespace oasr::models::whisper
