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

struct QuantLayout {
  std::vector<SmoothGroup> groups;
  std::vector<GemmChain> chains;
  // Full-precision products ahead of quantized ones that must be batch-invariant. Every product on a
  // CPU is; a device whose libraries are not pins these.
  std::vector<std::string> batch_invariant;
};

}  // namespace oasr::quant
