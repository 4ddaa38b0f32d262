#include <gtest/gtest.h>

#include "kernels/lane_report.h"
#include "kernels/scaled_conv/op.h"
#include "kernels/testing.h"

namespace oasr::kernels {
namespace {

[[maybe_unused]] const auto* const kLanes = report_lanes("scaled_mm, for scaled_conv", scaled_mm_lanes);

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

ConvGeometry geometry_of(const Geometry& g) {
  const std::int64_t pixel = g.channels + g.gap;
  return {.batch = g.batch, .height = g.height, .width = g.width, .channels = g.channels,
          .stride_batch = g.height * g.width * pixel, .stride_row = g.width * pixel, .stride_pixel = pixel,
          .vertical = g.vertical, .horizontal = g.horizontal};
}

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
    const ConvGeometry geometry = geometry_of(g);
    const ScaledConvArgs args{.x = x.data(), .geometry = geometry, .x_scale = &x_scale, .weight = &weight, .bias = bias.data()};
    ASSERT_GT(geometry.rows(), 0);
    const auto residual = random_floats(geometry.rows() * g.c_out, 5);
    std::vector<float> expected(size(geometry.rows() * g.c_out)), y(expected.size());
    const auto to = [&](std::vector<float>& values) {
      return FloatOutput{.residual = residual.data(), .ldr = g.c_out, .y = values.data(), .ldy = g.c_out};
    };
    scaled_conv_reference(args, to(expected));
    std::size_t at = 0;
    for (std::int64_t b = 0; b < g.batch; ++b) {
      for (std::int64_t oy = 0; oy < geometry.out_height(); ++oy) {
        for (std::int64_t ox = 0; ox < geometry.out_width(); ++ox) {
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

// Random geometry, floats; padding and pixels that are not finite.
TEST(ScaledConvStatic, IsTheQuantizationOfThePixelsThenTheConvolutionOnEveryLane) {
  for (const Geometry& g : kGeometries) {
    const ConvGeometry geometry = geometry_of(g);
    auto x = random_floats(g.batch * g.height * g.width * (g.channels + g.gap), 1);
    const auto w = random_int8(g.c_out * geometry.k(), 2);
    const auto scale = random_floats(g.c_out, 3, 0.01f), bias = random_floats(g.c_out, 4);
    const auto weight = PackedInt8Weight::pack(g.c_out, geometry.k(), w, scale);
    const float x_scale = 0.03f;
    const auto smooth = random_floats(g.channels, 5);
    std::vector<float> every_tap;
    for (std::int64_t tap = 0; tap < g.vertical.taps * g.horizontal.taps; ++tap) {
      every_tap.insert(every_tap.end(), smooth.begin(), smooth.end());
    }
    const auto of_pixel = static_multiplier(smooth, x_scale, g.channels);
    const auto multiplier = static_multiplier(every_tap, x_scale, geometry.k());
    const std::int64_t pixels = g.batch * g.height * g.width, pixel = g.channels + g.gap;
    std::vector<std::int8_t> q(x.size());
    EXPECT_FALSE(quantize_static_reference({.x = x.data(), .ldx = pixel, .m = pixels, .k = g.channels,
                                            .multiplier = of_pixel.data(), .q = q.data(), .ldq = pixel}));
    std::vector<float> expected(size(geometry.rows() * g.c_out)), y(expected.size());
    const auto to = [&](std::vector<float>& values) { return FloatOutput{.y = values.data(), .ldy = g.c_out}; };
    scaled_conv_reference({.x = q.data(), .geometry = geometry, .x_scale = &x_scale, .weight = &weight,
                           .bias = bias.data(), .activation = Activation::relu}, to(expected));
    const StaticScaledConvArgs args{.x = x.data(), .geometry = geometry, .multiplier = multiplier.data(),
                                    .x_scale = &x_scale, .weight = &weight, .bias = bias.data(),
                                    .activation = Activation::relu};
    EXPECT_FALSE(scaled_conv_static_reference(args, to(y)));
    EXPECT_EQ(first_difference(y, expected), -1);
    const auto clean = x;
    for (const ScaledMMLane& lane : runnable(scaled_mm_lanes())) {
      for (const int threads : {1, 3}) {
        ThreadPool pool(threads);
        ExecContext context{&pool, lane.isa};
        std::fill(y.begin(), y.end(), 77.0f);
        EXPECT_FALSE(scaled_conv_static(context, args, to(y)));
        EXPECT_EQ(first_difference(y, expected), -1) << lane.name << " k " << geometry.k() << " threads " << threads;
      }
      ThreadPool pool(2);
      ExecContext context{&pool, lane.isa};
      x[x.size() / 2 / size(pixel) * size(pixel)] = std::nanf("");
      std::vector<float> odd(y.size());
      const NotFinite found = scaled_conv_static_reference(args, to(odd));
      EXPECT_EQ(scaled_conv_static(context, args, to(y)).row, found.row) << lane.name;
      EXPECT_EQ(first_difference(y, odd), -1) << lane.name;
      x = clean;
    }
  }
}

}  // namespace
}  // namespace oasr::kernels
