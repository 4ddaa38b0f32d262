// Whisper's audio encoder: two convolutions, positions, pre-norm transformer blocks, final norm.
#pragma once

#include <span>
#include <vector>

#include "cache/kv_pool.h"
#include "layers/buffer.h"
#include "layers/layer_list.h"
#include "models/speech_model.h"
#include "models/whisper/config.h"

namespace oasr::models::whisper {

// The memory of one encoder pass, reused from pass to pass. T frames of a window follow those of the one before.
class EncoderBuffers {
 public:
  // For passes of at most `windows`. On a GPU unless it is null.
  EncoderBuffers(const Config& config, int windows, Gpu* gpu);
  // The memory of such buffers on a GPU.
  static std::size_t bytes_on_gpu(const Config& config, int windows);

  int windows;
  Matrix mel;      // [1 + 2T + 1, mels], time-major, padded; of one window
  Matrix x;        // [windows T, D], the residual stream
  Matrix normed;   // [windows T, D]; the encoder's output at the end
  layers::Buffer wide;     // conv1's output of one window, query|key|value, hidden rows of a feed-forward block
  cache::KvPool keys_values;  // a slot a window
  std::vector<kernels::AppendArgs> appends;      // of the running layer
  std::vector<kernels::AttentionArgs> attention;

 private:
  layers::Buffer mel_memory_, x_memory_, normed_memory_;
};

class Encoder {
 public:
  static Result<Encoder> load(const Config& config, const layers::Parameters& parameters,
                              const layers::WeightOptions& options);

  // Windows of mel [mels, 2T]; the result [windows T, D] is in buffers.normed, valid until the next pass. No
  // allocation in the steady state.
  Matrix forward(ExecContext& context, std::span<const MelWindow> windows, EncoderBuffers& buffers) const;

  // Adds the layers in the order of the forward pass; they must not move afterwards.
  void list(layers::LayerList& layers);

 private:
  struct Block {
    layers::LayerNorm self_attn_layer_norm;
    layers::Linear qkv_proj, out_proj;
    std::string self_attn;  // the path of what is between the two
    layers::LayerNorm final_layer_norm;
    layers::Linear fc1, fc2;
  };
  static Result<Block> load_block(const std::string& path, const layers::Parameters& parameters,
                                  const layers::WeightOptions& options);
  void embed(ExecContext& context, const MelWindow& window, EncoderBuffers& buffers, Matrix x) const;
  void attend(ExecContext& context, const Block& block, EncoderBuffers& buffers, Matrix x) const;
  void feed_forward(ExecContext& context, const Block& block, EncoderBuffers& buffers, Matrix x) const;

  Encoder(const Config& config, layers::Conv1d conv1, layers::Conv1d conv2,
          layers::LayerNorm layer_norm)
      : config_(config),
        conv1_(std::move(conv1)),
        conv2_(std::move(conv2)),
        layer_norm_(std::move(layer_norm)) {}

  Config config_;
  layers::Conv1d conv1_, conv2_;
  Floats positions_;  // [T, D]
  std::vector<Block> blocks_;
  layers::LayerNorm layer_norm_;
};

}  // namespace oasr::models::whisper
