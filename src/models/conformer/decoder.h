// A Transformer decoder over the encoder's output: one reading direction of U2's second pass.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cache/kv_pool.h"
#include "layers/buffer.h"
#include "layers/layer_list.h"
#include "models/conformer/config.h"

namespace oasr::models::conformer {

// Consecutive tokens of one sequence, appended to `slot` of the self-attention caches.
struct TokenPiece {
  int slot = 0;
  int utterance = 0;  // slot of the cross-attention caches
  std::span<const TokenId> tokens;
};

// Memory of decoder passes, grown to the largest one.
class DecoderBuffers {
 public:
  // On a GPU unless it is null.
  explicit DecoderBuffers(Gpu* gpu) : x_(0, gpu), normed_(0, gpu), wide_(0, gpu), positions_(0, gpu) {}
  void reserve(const Config& config, std::int64_t tokens, std::int64_t frames);

 private:
  friend class Decoder;
  layers::Buffer x_, normed_, wide_;
  std::vector<kernels::AttentionArgs> attention_;
  std::vector<kernels::AppendArgs> appends_;
  layers::Buffer positions_;  // sinusoids of the first positions, [n, D]
  std::vector<TokenId> ids_;  // of the running pass
  std::vector<std::int32_t> at_;
};

class Decoder {
 public:
  // `path`: "decoder.left_decoder".
  static Result<Decoder> load(const Config& config, bool left, const layers::Parameters& parameters,
                              const layers::WeightOptions& options);

  int blocks() const { return static_cast<int>(blocks_.size()); }

  // Keys and values of an utterance's encoder output [T, D], for all blocks, into a slot of `cross`.
  void encode(ExecContext& context, ConstMatrix encoder_output, int slot, cache::KvPool& cross,
              DecoderBuffers& buffers) const;

  // Hidden states [tokens of all pieces, D] after after_norm, valid until the next pass. Every token sees
  // those before it in its slot.
  Matrix forward(ExecContext& context, std::span<const TokenPiece> pieces, cache::KvPool& self,
                 cache::KvPool& cross, DecoderBuffers& buffers) const;

  // x [n, D] to logits [n, V].
  void logits(ExecContext& context, ConstMatrix x, Matrix out) const { output_layer_.forward(context, x, out); }

  void list(layers::LayerList& layers);

 private:
  struct Attention {
    layers::Linear q, k, v, out;
    std::string path;
  };
  struct Block {
    layers::LayerNorm norm1;
    Attention self_attn;
    layers::LayerNorm norm2;
    Attention src_attn;
    layers::LayerNorm norm3;
    layers::Linear w_1, w_2;
  };
  static Result<Attention> load_attention(const Config& config, const std::string& path,
                                          const layers::Parameters& parameters,
                                          const layers::WeightOptions& options);
  static Result<Block> load_block(const Config& config, const std::string& path,
                                  const layers::Parameters& parameters, const layers::WeightOptions& options);

  Decoder(const Config& config, layers::Embedding embed, layers::LayerNorm after_norm,
          layers::Linear output_layer)
      : config_(config),
        embed_(std::move(embed)),
        after_norm_(std::move(after_norm)),
        output_layer_(std::move(output_layer)) {}

  Matrix embed(ExecContext& context, std::span<const TokenPiece> pieces, cache::KvPool& self,
               DecoderBuffers& buffers) const;
  ConstMatrix positions(std::int64_t count, DecoderBuffers& buffers) const;
  void self_attend(ExecContext& context, int layer, std::span<const TokenPiece> pieces, cache::KvPool& self,
                   Matrix x, DecoderBuffers& buffers) const;
  void cross_attend(ExecContext& context, int layer, std::span<const TokenPiece> pieces,
                    cache::KvPool& cross, Matrix x, DecoderBuffers& buffers) const;
  void feed_forward(ExecContext& context, const Block& block, Matrix x, DecoderBuffers& buffers) const;
  kernels::AttentionArgs arguments(const kernels::KvCache& cache, Matrix q, Matrix out, std::int64_t row,
                                   std::int64_t count, bool causal) const;

  Config config_;
  layers::Embedding embed_;
  std::vector<Block> blocks_;
  layers::LayerNorm after_norm_;
  layers::Linear output_layer_;
};

}  // namespace oasr::models::conformer
