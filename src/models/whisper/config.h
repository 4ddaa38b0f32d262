// Whisper's dimensions, from any container.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "checkpoint/checkpoint.h"

namespace oasr::models::whisper {

// Names as in Hugging Face's config.json. Validated by read_config, then immutable.
struct Config {
  int d_model = 0;
  int encoder_layers = 0, encoder_attention_heads = 0, encoder_ffn_dim = 0;
  int decoder_layers = 0, decoder_attention_heads = 0, decoder_ffn_dim = 0;
  int vocab_size = 0;
  int num_mel_bins = 0;
  int max_source_positions = 0;      // encoder frames of a window: 1500
  int max_target_positions = 0;      // 448
  bool tie_word_embeddings = true;

  int encoder_head_dim() const { return d_model / encoder_attention_heads; }
  int decoder_head_dim() const { return d_model / decoder_attention_heads; }
  int window_frames() const { return 2 * max_source_positions; }  // mel frames: 3000
};

// True if the checkpoint is a Whisper model in one of the containers.
bool is_whisper(const Checkpoint& checkpoint);

// Reads and checks the dimensions: bad_checkpoint naming the key that is missing or out of range,
// unsupported for variants that Whisper does not have (another activation, scaled embeddings).
Result<Config> read_config(const Checkpoint& checkpoint);

}  // namespace oasr::models::whisper
