// What a model's structure allows, declared as data: where scales can be absorbed, and which layer can
// write the 8-bit input of the next.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace oasr::quant {

// Where X / s of a smoothed group of products goes.
enum class Fold : std::uint8_t {
  norm_affine,    // the norm's gamma and beta
  v_to_o,         // the value rows of the projection before attention
  producer_rows,  // the rows of the product before a positively homogeneous activation
  runtime,        // nowhere: the consumer multiplies its input by 1/s while it quantizes it
};

// Products that share one input.
struct SmoothGroup {
  std::vector<std::string> consumers;  // paths
  Fold fold = Fold::runtime;
  std::string producer;            // path of the norm or product that absorbs it; empty: runtime
  // The norm may write the consumers' int8 input itself: nothing but the consumers reads it, and
  // nothing sits between.
  bool fuse_output_quant = false;
  // v_to_o: heads of the consumer's input and of the producer's value rows, which come last; query heads
  // that share a key/value head share their scales.
  std::int64_t query_heads = 1, kv_heads = 1;
};

// The consumer reads the producer's output, all of it and nothing else does.
struct GemmChain {
  std::string producer, consumer;  // paths
};

// Which channels of a head are rotated together by rotary positions.
enum class RotaryPairing : std::uint8_t {
  none,         // positions do not rotate queries and keys
  split_half,   // i and i + head_dim / 2
  interleaved,  // 2i and 2i + 1
};

// Attention whose scores are q · k of each head, rotated or not, and nothing else: a channel of the keys may
// be divided by what the same channel of the queries is multiplied by. Only where nothing is added to either
// behind the layers named here (biases of relative positions are), and nothing else reads either.
struct AttentionScores {
  std::string query, key;  // paths of what writes them last: products, or norms that all heads share
  std::int64_t query_row = 0, key_row = 0;  // their first rows there: products may hold keys and values too
  // Query heads that share a key/value head come one after the other. Of norms: 1 and 1.
  std::int64_t query_heads = 1, kv_heads = 1;
  std::int64_t head_dim = 0;  // even where there are pairs
  RotaryPairing pairing = RotaryPairing::none;

  std::int64_t key_channels() const { return kv_heads * head_dim; }
};

struct QuantLayout {
  std::vector<SmoothGroup> groups;
  std::vector<GemmChain> chains;
  std::vector<AttentionScores> attention;
  // Full-precision products ahead of quantized ones that must be batch-invariant. Every product on a
  // CPU is; a device whose libraries are not pins these.
  std::vector<std::string> batch_invariant;
};

}  // namespace oasr::quant
