// Sinusoidal positions, and the keys that a Conformer's attention projects them to.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/attention/op.h"
#include "layers/buffer.h"
#include "layers/linear.h"

namespace oasr::models::conformer {

// out[2i] = sin(position · w_i), out[2i + 1] = cos(position · w_i) with w_i = 10000^(-2i / D), in
// float32 steps as the reference takes them.
void sinusoid(std::int64_t position, std::span<float> out);

// linear_pos(sinusoid(j)) of every block for positions from 0 on, as long as the longest stream: shared
// by all streams of a state. Positions grow with the audio; there is no limit but memory, 4 · D bytes
// a position and block.
class PositionTable {
 public:
  PositionTable(std::vector<const layers::Linear*> linear_pos, int heads, int head_dim);

  // Room for positions [0, count).
  void reserve(ExecContext& context, std::int64_t count);

  // Positions [first, first + count) of a block. `scratch` holds them when they do not begin with a
  // panel of the kernels; the view is valid until it is used again, or the table grows.
  kernels::KvCache view(ExecContext& context, int block, std::int64_t first, std::int64_t count,
                        Memory& scratch) const;

  std::size_t bytes() const;

 private:
  std::vector<const layers::Linear*> linear_pos_;
  int heads_, head_dim_;
  std::int64_t length_ = 0;
  std::vector<Memory> memory_;
  std::vector<kernels::KvCache> keys_;
};

}  // namespace oasr::models::conformer
