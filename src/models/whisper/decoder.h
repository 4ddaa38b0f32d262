// Whisper's text decoder over key/value caches: many sequences advance in one pass.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "cache/kv_pool.h"
#include "layers/buffer.h"
#include "layers/layer_list.h"
#include "models/whisper/config.h"
#include "models/whisper/encoder.h"
#include "models/whisper/known_sizes.h"

namespace oasr::models::whisper {

// Consecutive tokens of one sequence: appended to `slot` of the self-attention caches, attending to
// `window` of the cross-attention caches.
struct Piece {
  int slot = 0;
  int window = 0;
  std::span<const TokenId> tokens;
};

// Cross-attention weights of chosen heads, collected over the pieces of one sequence.
class AlignmentWeights {
 public:
  AlignmentWeights(std::span<const AlignmentHead> heads, int heads_per_layer, std::int64_t tokens,
                   std::int64_t frames, std::int64_t piece_tokens, Gpu* gpu);

  // Where the attention of `layer` writes its weights [heads, piece tokens, frames]; null for a
  // layer without a chosen head.
  float* layer_buffer(int layer);
  // Keeps what the layer wrote for `count` tokens, the next ones of the sequence.
  void collect(ExecContext& context, int layer, std::int64_t count);
  void advance(std::int64_t count) { first_token_ += count; }

  // [heads, tokens, frames] in the order of the heads.
  std::vector<float> take(ExecContext& context);

 private:
  std::span<const AlignmentHead> heads_;
  std::int64_t tokens_, frames_, first_token_ = 0;
  layers::Buffer layer_, chosen_;
};

// The memory of decoder passes: up to `tokens` tokens a pass, up to `rows` finished sequences.
class DecoderBuffers {
 public:
  // On a GPU unless it is null.
  DecoderBuffers(const Config& config, std::int64_t tokens, std::int64_t rows, Gpu* gpu);
  static std::size_t bytes(const Config& config, std::int64_t tokens, std::int64_t rows);

  std::int64_t tokens;    // most tokens of a pass
  layers::Buffer x;       // [tokens, D], the residual stream
  layers::Buffer normed;  // [tokens, D]
  layers::Buffer wide;    // query|key|value, hidden
  layers::Buffer last;    // [rows, D], the vectors that the head reads
  std::vector<kernels::AttentionArgs> attention;
  std::vector<kernels::AppendArgs> appends;
  std::vector<TokenId> ids;              // of the running pass
  std::vector<std::int32_t> positions;
};

class Decoder {
 public:
  static Result<Decoder> load(const Config& config, const layers::Parameters& parameters,
                              const layers::WeightOptions& options);

  // Projects encoder output [windows T, D] to the cross-attention keys and values of `windows`, slots of `cross`,
  // with the memory of the encoder's pass.
  void encode_windows(ExecContext& context, ConstMatrix encoder_output, std::span<const int> windows,
                      cache::KvPool& cross, EncoderBuffers& buffers) const;

  // Runs all pieces through all blocks and appends to their caches. The result [tokens, D] is the
  // residual stream in the order of the pieces, before the final norm, in buffers.x. A row depends
  // on its own sequence only. `alignment` may be null; it needs a single piece.
  Matrix forward(ExecContext& context, std::span<const Piece> pieces, cache::KvPool& self,
                         cache::KvPool& cross, DecoderBuffers& buffers,
                         AlignmentWeights* alignment = nullptr) const;

  // Final norm and output head: x [M, D] (normed in place) to logits [M, V].
  void logits(ExecContext& context, Matrix x, Matrix out) const;

  const Config& config() const { return config_; }
  DType weight_dtype() const { return embed_tokens_.storage(); }
  // Adds the layers in the order of the forward pass; they must not move afterwards.
  void list(layers::LayerList& layers);

 private:
  struct Block {
    layers::LayerNorm self_attn_layer_norm;
    layers::Linear qkv_proj, out_proj;
    std::string self_attn, encoder_attn;  // the paths of what is between products
    layers::LayerNorm encoder_attn_layer_norm;
    layers::Linear cross_q_proj, cross_kv_proj, cross_out_proj;
    layers::LayerNorm final_layer_norm;
    layers::Linear fc1, fc2;
  };
  static Result<Block> load_block(const std::string& path, const layers::Parameters& parameters,
                                  const layers::WeightOptions& options);
  Matrix embed(ExecContext& context, std::span<const Piece> pieces, cache::KvPool& self,
               DecoderBuffers& buffers) const;
  void self_attend(ExecContext& context, int layer, std::span<const Piece> pieces,
                   cache::KvPool& self, Matrix x, DecoderBuffers& buffers) const;
  void cross_attend(ExecContext& context, int layer, std::span<const Piece> pieces,
                    cache::KvPool& cross, Matrix x, DecoderBuffers& buffers,
                    AlignmentWeights* alignment) const;
  void feed_forward(ExecContext& context, const Block& block, Matrix x,
                    DecoderBuffers& buffers) const;

  Decoder(const Config& config, layers::Embedding embed_tokens, layers::LayerNorm layer_norm,
          layers::Linear proj_out)
      : config_(config),
        embed_tokens_(std::move(embed_tokens)),
        layer_norm_(std::move(layer_norm)),
        proj_out_(std::move(proj_out)) {}

  Config config_;
  layers::Embedding embed_tokens_;
  Floats positions_;  // [max_target_positions, D]
  std::vector<Block> blocks_;
  layers::LayerNorm layer_norm_;
  layers::Linear proj_out_;
};

}  // namespace oasr::models::whisper
