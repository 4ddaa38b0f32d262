#include <gtest/gtest.h>

#include "kernels/scaled_conv/op.h"
#include "kernels/testing.h"

namespace oasr::kernels {
namespace {

std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }

std::vector<std::int8_t> random_int8(std::int64_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_int_distribution<int> any(-127, 127);
  std::vector<std::int8_t> values(size(count));
  for (std::int8_t& value : values) value = static_cast<std::int8_t>(any(engine));
  return values;
}

struct Geometry {
  std::int64_t batch, height, width, channels, c_out;
  ConvAxis vertical, horizontal;
  std::int64_t gap = 0;  // elements between pixels
};

const Geometry kGeometries[] = {
    // 1-D: Whisper's two, one frame, a kernel as long as the padded input.
    {1, 1, 100, 80, 48, {}, {.taps = 3, .stride = 1, .before = 1, .after = 1}},
    {2, 1, 101, 48, 33, {}, {.taps = 3, .stride = 2, .before = 1, .after = 1}},
    {1, 1, 1, 16, 8, {}, {.taps = 3, .stride = 2, .before = 1, .after = 1}},
    {1, 1, 3, 5, 7, {}, {.taps = 5, .stride = 1, .before = 1, .after = 1}},
    {3, 1, 40, 16, 8, {}, {.taps = 3, .stride = 1, .dilation = 4, .before = 8, .after = 0}},
    // 2-D: the subsampling of a Conformer, uneven strides and padding, gaps between pixels.
    {1, 39, 19, 16, 24, {.taps = 3, .stride = 2}, {.taps = 3, .stride = 2}},
    {2, 9, 12, 7, 20, {.taps = 3, .stride = 1, .before = 1, .after = 1}, {.taps = 5, .stride = 2, .before = 2, .after = 1}, 3},
    {1, 8, 8, 3, 16, {.taps = 2, .stride = 2, .dilation = 2}, {.taps = 3, .stride = 1, .dilation = 3, .before = 3, .after = 3}},
    {2, 5, 6, 4, 9, {}, {}},
};

// The definition from first principles, on a weight [C_out, R, S, C] and double-free integers.
std::int32_t sum_at(const Geometry& g, const std::vector<std::int8_t>& x, const std::vector<std::int8_t>& w,
                    std::int64_t b, std::int64_t oy, std::int64_t ox, std::int64_t n) {
  std::int32_t sum = 0;
  for (std::int64_t r = 0; r < g.vertical.taps; ++r) {
    for (std::int64_t s = 0; s < g.horizontal.taps; ++s) {
      const std::int64_t y = oy * g.vertical.stride + r * g.vertical.dilation - g.vertical.before;
      const std::int64_t column = ox * g.horizontal.stride + s * g.horizontal.dilation - g.horizontal.before;
      if (y < 0 || y >= g.height || column < 0 || column >= g.width) continue;
      for (std::int64_t c = 0; c < g.channels; ++c) {
        sum += x[size(((b * g.height + y) * g.width + column) * (g.channels + g.gap) + c)] *
               w[size(((n * g.vertical.taps + r) * g.horizontal.taps + s) * g.channels + c)];
      }
    }
  }
  return sum;
}

TEST(ScaledConv, EqualsItsDefinitionOnEveryLane) {
  for (const Geometry& g : kGeometries) {
    const auto x = random_int8(g.batch * g.height * g.width * (g.channels + g.gap), 1);
    const std::int64_t k = g.vertical.taps * g.horizontal.taps * g.channels;
    const auto w = random_int8(g.c_out * k, 2);
    const auto scale = random_floats(g.c_out, 3, 0.01f), bias = random_floats(g.c_out, 4);
    const auto weight = PackedInt8Weight::pack(g.c_out, k, w, scale);
    const float x_scale = 0.03f;
    const std::int64_t pixel = g.channels + g.gap;
    const ScaledConvArgs args{.x = x.data(), .batch = g.batch, .height = g.height, .width = g.width,
                              .stride_batch = g.height * g.width * pixel, .stride_row = g.width * pixel,
                              .stride_pixel = pixel, .vertical = g.vertical, .horizontal = g.horizontal,
                              .x_scale = &x_scale, .weight = &weight, .bias = bias.data()};
    ASSERT_GT(args.rows(), 0);
    const auto residual = random_floats(args.rows() * g.c_out, 5);
    std::vector<float> expected(size(args.rows() * g.c_out)), y(expected.size());
    const auto to = [&](std::vector<float>& values) {
      return FloatOutput{.residual = residual.data(), .ldr = g.c_out, .y = values.data(), .ldy = g.c_out};
    };
    scaled_conv_reference(args, to(expected));
    std::size_t at = 0;
    for (std::int64_t b = 0; b < g.batch; ++b) {
      for (std::int64_t oy = 0; oy < args.out_height(); ++oy) {
        for (std::int64_t ox = 0; ox < args.out_width(); ++ox) {
          for (std::int64_t n = 0; n < g.c_out; ++n, ++at) {
            const float value = x_scale * (scale[size(n)] * static_cast<float>(sum_at(g, x, w, b, oy, ox, n))) + bias[size(n)];
            ASSERT_TRUE(same_bits(expected[at], value + residual[at]));
          }
        }
      }
    }
    for (const ScaledMMLane& lane : runnable(scaled_mm_lanes())) {
      for (const int threads : {1, 3}) {
        ThreadPool pool(threads);
        ExecContext context{&pool, lane.isa};
        std::fill(y.begin(), y.end(), 77.0f);
        scaled_conv(context, args, to(y));
        EXPECT_EQ(first_difference(y, expected), -1) << lane.name << " k " << k << " threads " << threads;
      }
    }
  }
}

TEST(ConvAxis, CountsOutputsLikeTheFormula) {
  EXPECT_EQ((ConvAxis{.taps = 3, .stride = 2, .before = 1, .after = 1}.outputs(3000)), 1500);
  EXPECT_EQ((ConvAxis{.taps = 3, .stride = 2}.outputs(2)), 0);
  EXPECT_EQ((ConvAxis{.taps = 3, .stride = 2}.outputs(3)), 1);
  EXPECT_EQ((ConvAxis{.taps = 3, .stride = 1, .dilation = 4}.outputs(9)), 1);
}

}  // namespace
}  // namespace oasr::kernels
