// The Conformer's encoder over any mix of whole utterances and chunks of streams.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/attention/op.h"
#include "layers/buffer.h"
#include "layers/layer_list.h"
#include "models/conformer/config.h"
#include "models/conformer/conv_module.h"
#include "models/conformer/positions.h"
#include "models/speech_model.h"

namespace oasr::models::conformer {

// What the encoder remembers of one utterance between its pieces. Without a mask, or as `whole`, an
// utterance is one piece, and only a layer's keys and values are kept at a time.
class EncoderCache {
 public:
  EncoderCache(const Config& config, const ChunkMask& mask, bool whole);

  std::int64_t frames() const { return frames_; }  // that went in
  const ChunkMask& mask() const { return mask_; }
  std::size_t bytes() const;

 private:
  friend class Encoder;
  struct Layer {
    Memory memory;
    kernels::KvCache kv;
    std::int64_t first = 0;    // frame that position 0 of kv is
    layers::Buffer tail;       // the convolution's last inputs, [kernel - 1, D]
  };
  Layer& layer(int block) { return layers_[whole_ ? 0 : static_cast<std::size_t>(block)]; }

  ChunkMask mask_;
  bool whole_;
  std::int64_t frames_ = 0;
  std::vector<Layer> layers_;
};

// Consecutive frames of one utterance.
struct Piece {
  EncoderCache* cache = nullptr;
  std::int64_t rows = 0;
};

// The memory of encoder passes, grown to the largest one.
class EncoderBuffers {
 public:
  explicit EncoderBuffers(Gpu* gpu) : normed_(0, gpu), wide_(0, gpu) {}
  void reserve(const Config& config, std::int64_t rows, std::int64_t pieces);

  Matrix normed(std::int64_t rows, std::int64_t d) { return normed_.matrix(rows, d); }

 private:
  friend class Encoder;
  layers::Buffer normed_, wide_;
  std::vector<kernels::AppendArgs> appends_;
  std::vector<kernels::AttentionArgs> attention_;
  std::vector<kernels::KvCache> caches_;      // what the arguments point to
  std::vector<std::int32_t> into_, back_;     // rows of convolve_together()
  std::vector<Memory> position_scratch_;
  std::vector<layers::Buffer> zero_gates_;  // of every block, what its gate gives for a frame of zeros: [D]
};

class Encoder {
 public:
  static Result<Encoder> load(const Config& config, const layers::Parameters& parameters,
                              const layers::WeightOptions& options);

  // x [rows of all pieces, D], subsampled and scaled, is overwritten; the result of after_norm is in the
  // buffers until the next pass. A row's bits depend on its own utterance and mask only, not on how the
  // utterance was cut or on what else is in the pass.
  Matrix forward(ExecContext& context, Matrix x, std::span<const Piece> pieces, PositionTable& positions,
                 EncoderBuffers& buffers) const;

  PositionTable make_positions() const;
  // Adds the layers in the order of the forward pass; they must not move afterwards.
  void list(layers::LayerList& layers);

 private:
  struct Block {
    layers::LayerNorm norm_ff_macaron;
    layers::Linear macaron_w_1, macaron_w_2;
    layers::LayerNorm norm_mha;
    layers::Linear linear_qkv, linear_pos, linear_out;
    Floats pos_bias_u, pos_bias_v;  // [heads · head_dim]
    std::string self_attn;                      // the path of what is between the products
    layers::LayerNorm norm_conv;
    ConvModule conv_module;
    layers::LayerNorm norm_ff;
    layers::Linear w_1, w_2;
    layers::LayerNorm norm_final;
  };
  static Result<Block> load_block(const Config& config, const std::string& path,
                                  const layers::Parameters& parameters, const layers::WeightOptions& options);

  Encoder(Config config, layers::LayerNorm after_norm)
      : config_(std::move(config)), after_norm_(std::move(after_norm)) {}

  void feed_forward(ExecContext& context, const layers::LayerNorm& norm, const layers::Linear& w_1,
                    const layers::Linear& w_2, Matrix x, EncoderBuffers& buffers) const;
  void attend(ExecContext& context, int block, Matrix x, std::span<const Piece> pieces,
              const PositionTable& positions, EncoderBuffers& buffers) const;
  bool add_attention(ExecContext& context, int block, const Piece& piece, std::int64_t row, int round,
                     Matrix qkv, Matrix out, const PositionTable& positions, EncoderBuffers& buffers) const;
  void append(ExecContext& context, EncoderCache::Layer& layer, Matrix qkv, EncoderBuffers& buffers) const;
  Matrix zero_gate(ExecContext& context, int block, EncoderBuffers& buffers) const;
  void convolve_together(ExecContext& context, int block, Matrix wide, std::span<const Piece> pieces, Matrix out,
                         EncoderBuffers& buffers) const;
  void convolve(ExecContext& context, int block, Matrix x, std::span<const Piece> pieces,
                EncoderBuffers& buffers) const;

  Config config_;
  std::vector<Block> blocks_;
  layers::LayerNorm after_norm_;
};

}  // namespace oasr::models::conformer
