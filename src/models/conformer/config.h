// The dimensions of a WeNet U2 or U2++ Conformer, from its train.yaml.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "features/fbank.h"
#include "kernels/linear/activation.h"
#include "text/token_id.h"

namespace oasr::models::conformer {

// One convolution of the subsampling: `kernel` × `kernel` over time and frequency, no padding, ReLU.
struct SubsamplingStage {
  int kernel = 3;
  int stride = 2;
};

// Names as in train.yaml. Validated by read_config, then immutable.
struct Config {
  struct Encoder {
    int output_size = 256;
    int num_blocks = 12;
    int attention_heads = 4;
    int linear_units = 2048;
    int cnn_module_kernel = 15;
    bool causal = false;
    bool batch_norm = true;  // cnn_module_norm; else layer_norm
    kernels::Activation activation = kernels::Activation::swish;
    std::vector<SubsamplingStage> subsampling;  // input_layer
    bool dynamic_chunk = false;  // trained with chunk masks
    int static_chunk_size = 0;

    int head_dim() const { return output_size / attention_heads; }
  };
  struct Decoder {
    int num_blocks = 6;
    int r_num_blocks = 0;  // of the right-to-left decoder; 0: there is none
    int attention_heads = 4;
    int linear_units = 2048;
    kernels::Activation activation = kernels::Activation::relu;
  };
  Encoder encoder;
  std::optional<Decoder> decoder;  // nothing: CTC alone
  int input_dim = 80;
  int output_dim = 0;              // the vocabulary
  TokenId blank = 0, sos = 0, eos = 0;
  double ctc_weight = 0.5;         // of rescoring, when a request says nothing
  double reverse_weight = 0;
  bool cmvn = false;               // train.yaml names global statistics
  FbankOptions features;

  // Feature frames an encoder frame is apart from the next, and what it sees after its first one.
  int subsampling_rate() const;
  int right_context() const;
  // Width of the features after the convolutions: 80 → 39 → 19.
  int subsampled_bins() const;
  // Encoder frames of so many feature frames.
  std::int64_t encoder_frames(std::int64_t frames) const;
};

// True if the checkpoint is of WeNet's kind, with a Conformer encoder or not.
bool is_conformer(const Checkpoint& checkpoint);

// bad_checkpoint (a value that makes no sense) or unsupported (another encoder, attention or front end),
// naming the key.
Result<Config> read_config(const Checkpoint& checkpoint);

}  // namespace oasr::models::conformer
