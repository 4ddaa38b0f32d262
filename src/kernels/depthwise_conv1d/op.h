// Depthwise convolution over time: every channel has its own taps. Time-major, stride 1, no padding.
//
// Contract (every lane, any number of frames, thread count, instruction set: the same bits):
//   acc(t, c) = fma chain over taps j = 0 … k-1 in rising order of x[t + j, c] · w[c, j], from +0
//   y(t, c)   = acc + bias[c]
// A frame's result depends on its k input rows only, so a stream gives the bits of the whole.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "device/memory.h"
#include "device/thread_pool.h"

namespace oasr::kernels {

// A weight [C, 1, k] as checkpoints have it, kept tap-major as float32 (16-bit values are widened
// exactly).
class DepthwiseWeight {
 public:
  // Fills `out` (k floats) with the taps of channel c.
  using RowSource = std::function<void(std::int64_t c, std::span<float> out)>;

  DepthwiseWeight() = default;
  static DepthwiseWeight pack(std::int64_t channels, std::int64_t taps, const RowSource& rows);
  // Moves the numbers to a GPU, whose kernels then are the only ones that can use them.
  void place(Gpu& gpu);

  std::int64_t channels() const { return channels_; }
  std::int64_t taps() const { return taps_; }
  std::size_t bytes() const { return data_.size(); }
  const float* data() const { return reinterpret_cast<const float*>(data_.data()); }
  // The taps of channel c, k floats; not of a weight on a GPU.
  void unpack_row(std::int64_t c, std::span<float> out) const;

 private:
  std::int64_t channels_ = 0, taps_ = 0;
  bool placed_ = false;
  Memory data_;  // [taps][channels]
};

struct DepthwiseConv1dArgs {
  // [frames + k - 1, C], row stride ldx. Causal or symmetric is the caller's choice of the rows that
  // it puts before and after the input.
  const float* x = nullptr;
  std::int64_t ldx = 0;
  std::int64_t frames = 0;  // outputs
  const DepthwiseWeight* weight = nullptr;
  const float* bias = nullptr;  // [C] or null
  float* y = nullptr;  // [frames, C], row stride ldy; must not overlap x
  std::int64_t ldy = 0;
};
void depthwise_conv1d(ExecContext& context, const DepthwiseConv1dArgs& args);

// A row of the lane table: one instruction set's code for output frames [t0, t1).
struct DepthwiseConv1dLane {
  std::string_view name;  // "avx512"
  Isa isa;
  void (*run)(const DepthwiseConv1dArgs& args, std::int64_t t0, std::int64_t t1);
};
std::span<const DepthwiseConv1dLane> depthwise_conv1d_lanes();
// The lane that depthwise_conv1d() uses for an Isa: the highest with lane.isa <= isa.
const DepthwiseConv1dLane& depthwise_conv1d_lane(Isa isa);

// The definition: plain loops, single thread.
void depthwise_conv1d_reference(const DepthwiseConv1dArgs& args);

}  // namespace oasr::kernels
