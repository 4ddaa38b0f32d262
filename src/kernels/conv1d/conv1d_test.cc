#include <gtest/gtest.h>

#include <cmath>

#include "kernels/conv1d/op.h"
#include "kernels/testing.h"
#include "tensor/exact_math.h"

namespace oasr::kernels {
namespace {

// The definition, on a weight [C_out, C_in, 3]: an fma chain over taps, over channels within a tap.
float conv_at(const std::vector<float>& x, const std::vector<float>& w, std::int64_t frames,
              std::int64_t c_in, std::int64_t stride, std::int64_t t, std::int64_t n) {
  float sum = 0;
  for (std::int64_t tap = 0; tap < 3; ++tap) {
    const std::int64_t from = t * stride + tap - 1;
    for (std::int64_t c = 0; c < c_in; ++c) {
      const bool inside = from >= 0 && from < frames;
      const float value = inside ? x[static_cast<std::size_t>(from * c_in + c)] : 0.0f;
      sum = std::fma(value, w[static_cast<std::size_t>((n * c_in + c) * 3 + tap)], sum);
    }
  }
  return sum;
}

TEST(Conv1d, EqualsItsDefinition) {
  ThreadPool pool(2);
  ExecContext context{&pool, detected_isa()};
  const std::int64_t c_out = 37;
  for (const std::int64_t stride : {1, 2}) {
    for (const std::int64_t frames : {1, 2, 3, 4, 17, 300}) {
      for (const std::int64_t c_in : {1, 8, 80}) {
        const auto x = random_floats(frames * c_in, 1), w = random_floats(c_out * c_in * 3, 2);
        const auto bias = random_floats(c_out, 3);
        const auto weight = pack_conv1d(c_out, c_in, DType::f32, [&](std::int64_t n, std::span<float> row) {
          std::copy_n(w.data() + n * c_in * 3, row.size(), row.data());
        });
        std::vector<float> padded(static_cast<std::size_t>((frames + 2) * c_in), 99.0f);
        std::copy(x.begin(), x.end(), padded.begin() + c_in);
        const std::int64_t out = conv1d_frames(frames, stride);
        const auto residual = random_floats(out * c_out, 4);
        std::vector<float> y(static_cast<std::size_t>(out * c_out));
        conv1d(context, {.x = padded.data(), .frames = frames, .stride = stride, .weight = &weight,
                         .bias = bias.data(), .activation = Activation::gelu,
                         .residual = residual.data(), .ldr = c_out, .y = y.data(), .ldy = c_out});
        for (std::int64_t t = 0; t < out; ++t) {
          for (std::int64_t n = 0; n < c_out; ++n) {
            const auto at = static_cast<std::size_t>(t * c_out + n);
            const float sum = conv_at(x, w, frames, c_in, stride, t, n);
            const float expected = exact::gelu(sum + bias[static_cast<std::size_t>(n)]) + residual[at];
            ASSERT_TRUE(same_bits(y[at], expected)) << "frame " << t << " channel " << n;
          }
        }
      }
    }
  }
}

TEST(Conv1d, HasHalfTheFramesRoundedUpWithStrideTwo) {
  EXPECT_EQ(conv1d_frames(3000, 1), 3000);
  EXPECT_EQ(conv1d_frames(3000, 2), 1500);
  EXPECT_EQ(conv1d_frames(3, 2), 2);
  EXPECT_EQ(conv1d_frames(1, 2), 1);
}

}  // namespace
}  // namespace oasr::kernels
