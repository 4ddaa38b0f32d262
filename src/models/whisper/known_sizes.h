// OpenAI's published Whisper sizes, recognised by their dimensions.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "models/whisper/config.h"

namespace oasr::models::whisper {

// (decoder layer, head)
using AlignmentHead = std::pair<int, int>;

struct KnownSize {
  std::string_view name;  // "base.en"
  int d_model, encoder_layers, decoder_layers, num_mel_bins;
  bool multilingual;
  std::span<const AlignmentHead> alignment_heads;
};

// The published size with these dimensions, or null. large-v1 and large-v2 have the same ones:
// both are "large", with the heads of large-v2.
const KnownSize* known_size(const Config& config, bool multilingual);

// Cross-attention heads that follow the audio: the published ones of a known size, else all heads
// of the upper half of the decoder (what openai-whisper takes for a model it does not know).
std::vector<AlignmentHead> default_alignment_heads(const Config& config, bool multilingual);

}  // namespace oasr::models::whisper
