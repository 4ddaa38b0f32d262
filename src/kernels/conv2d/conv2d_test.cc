#include <gtest/gtest.h>

#include "kernels/conv2d/op.h"
#include "kernels/lane_report.h"
#include "kernels/testing.h"

namespace oasr::kernels {
namespace {

[[maybe_unused]] const auto* const kLanes = report_lanes("linear, for conv2d", linear_lanes);

std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }

struct Geometry {
  std::int64_t batch, height, width, channels, c_out;
  ConvAxis vertical, horizontal;
  std::int64_t gap = 0;  // elements between pixels
};

const Geometry kGeometries[] = {
    // The subsamplings of a Conformer: stem, second, conv2d6's, a stem of more channels.
    {1, 41, 80, 1, 256, {.taps = 3, .stride = 2}, {.taps = 3, .stride = 2}},
    {2, 7, 9, 1, 33, {.taps = 3, .stride = 2}, {.taps = 3, .stride = 2}},
    {1, 15, 39, 32, 40, {.taps = 3, .stride = 2}, {.taps = 3, .stride = 2}},
    {1, 11, 19, 16, 24, {.taps = 5, .stride = 3}, {.taps = 5, .stride = 3}},
    {1, 3, 3, 256, 256, {.taps = 3, .stride = 2}, {.taps = 3, .stride = 2}},
    {3, 5, 6, 3, 20, {.taps = 3, .stride = 2, .before = 1, .after = 1}, {.taps = 3, .stride = 2, .before = 1, .after = 1}},
    // Uneven strides and padding, gaps between pixels, dilation, one tap.
    {2, 9, 12, 7, 20, {.taps = 3, .stride = 1, .before = 1, .after = 1}, {.taps = 5, .stride = 2, .before = 2, .after = 1}, 3},
    {1, 8, 8, 1, 70, {.taps = 2, .stride = 2, .dilation = 2, .before = 3}, {.taps = 3, .stride = 1, .dilation = 3, .before = 3, .after = 3}},
    {1, 6, 5, 1, 8, {.taps = 5, .stride = 1, .before = 2, .after = 2}, {.taps = 3, .stride = 2, .after = 1}, 2},
    {2, 5, 6, 4, 9, {}, {}},
};

struct Case {
  explicit Case(const Geometry& from, DType storage = DType::f32)
      : g(from), pixel(g.channels + g.gap), x(random_floats(g.batch * g.height * g.width * pixel, 1)),
        w(random_floats(g.c_out * g.channels * g.vertical.taps * g.horizontal.taps, 2, 0.2f)),
        bias(random_floats(g.c_out, 3)),
        weight(pack_conv2d(g.c_out, g.channels, g.vertical.taps, g.horizontal.taps, storage,
                           [this](std::int64_t n, std::span<float> row) {
                             std::copy_n(w.begin() + n * static_cast<std::int64_t>(row.size()), row.size(), row.begin());
                           })) {}

  Conv2dArgs args(std::vector<float>& y) const {
    return {.x = x.data(),
            .geometry = {.batch = g.batch, .height = g.height, .width = g.width, .channels = g.channels,
                         .stride_batch = g.height * g.width * pixel, .stride_row = g.width * pixel,
                         .stride_pixel = pixel, .vertical = g.vertical, .horizontal = g.horizontal},
            .weight = &weight, .bias = bias.data(), .activation = Activation::relu, .y = y.data(), .ldy = g.c_out + 1};
  }
  std::vector<float> output(std::int64_t rows) const { return std::vector<float>(size(rows * (g.c_out + 1)), 77.0f); }

  // The definition from first principles, on the weight as checkpoints have it.
  float sum_at(std::int64_t b, std::int64_t oy, std::int64_t ox, std::int64_t n) const {
    float sum = 0;
    for (std::int64_t r = 0; r < g.vertical.taps; ++r) {
      for (std::int64_t s = 0; s < g.horizontal.taps; ++s) {
        const std::int64_t y = oy * g.vertical.stride + r * g.vertical.dilation - g.vertical.before;
        const std::int64_t column = ox * g.horizontal.stride + s * g.horizontal.dilation - g.horizontal.before;
        const bool inside = y >= 0 && y < g.height && column >= 0 && column < g.width;
        for (std::int64_t c = 0; c < g.channels; ++c) {
          const float value = inside ? x[size(((b * g.height + y) * g.width + column) * pixel + c)] : 0.0f;
          sum = std::fma(value, w[size(((n * g.channels + c) * g.vertical.taps + r) * g.horizontal.taps + s)], sum);
        }
      }
    }
    return sum;
  }

  Geometry g;
  std::int64_t pixel;
  std::vector<float> x, w, bias;
  PackedWeight weight;
};

TEST(Conv2d, EqualsItsDefinitionOnTheStoredWeight) {
  for (const Geometry& g : kGeometries) {
    const Case test(g);
    const std::int64_t rows = test.args(*std::make_unique<std::vector<float>>()).geometry.rows();
    ASSERT_GT(rows, 0);
    auto y = test.output(rows);
    const Conv2dArgs args = test.args(y);
    conv2d_reference(args);
    std::size_t row = 0;
    for (std::int64_t b = 0; b < g.batch; ++b) {
      for (std::int64_t oy = 0; oy < args.geometry.out_height(); ++oy) {
        for (std::int64_t ox = 0; ox < args.geometry.out_width(); ++ox, ++row) {
          for (std::int64_t n = 0; n < g.c_out; ++n) {
            const float sum = test.sum_at(b, oy, ox, n) + test.bias[size(n)];
            ASSERT_TRUE(same_bits(y[row * size(g.c_out + 1) + size(n)], 0.0f > sum ? 0.0f : sum));
          }
        }
      }
    }
  }
}

TEST(Conv2d, EqualsTheReferenceOnEveryLaneForAnyThreadsStorageAndActivation) {
  unsigned number = 0;
  for (const Geometry& g : kGeometries) {
    for (const DType storage : {DType::f32, DType::f16, DType::bf16}) {
      const Case test(g, storage);
      std::vector<float> none;
      const std::int64_t rows = test.args(none).geometry.rows();
      auto expected = test.output(rows);
      Conv2dArgs args = test.args(expected);
      if (++number % 3 == 0) args.bias = nullptr;
      if (number % 2 == 0) args.activation = some_activation(number / 2);
      conv2d_reference(args);
      for (const LinearLane& lane : runnable(linear_lanes())) {
        for (const int threads : {1, 3}) {
          ThreadPool pool(threads);
          ExecContext context{&pool, lane.isa};
          auto y = test.output(rows);
          args.y = y.data();
          conv2d(context, args);
          EXPECT_EQ(first_difference(y, expected), -1) << lane.name << " k " << args.geometry.k() << " threads " << threads;
        }
      }
    }
  }
}

TEST(Conv2d, GivesPiecesOfTheInputAndRowsOfABatchTheBitsOfTheWhole) {
  ThreadPool pool(2);
  ExecContext context{&pool, detected_isa()};
  for (const std::int64_t channels : {1, 32}) {
    const Case test({1, 67, 39, channels, 48, {.taps = 3, .stride = 2}, {.taps = 3, .stride = 2}});
    auto whole = test.output(33 * 19), pieces = whole;
    conv2d(context, test.args(whole));
    for (std::int64_t t = 0, count = 1; t < 33; t += count, count = count % 5 + 1) {
      Conv2dArgs args = test.args(pieces);
      args.x += 2 * t * args.geometry.stride_row;
      args.geometry.height = 2 * std::min(count, 33 - t) + 1;
      args.y += t * 19 * args.ldy;
      conv2d(context, args);
    }
    EXPECT_EQ(first_difference(pieces, whole), -1);
    Conv2dArgs batch = test.args(pieces);  // the same input twice, as two items that overlap
    auto twice = test.output(2 * 33 * 19);
    batch.geometry.batch = 2;
    batch.geometry.stride_batch = 0;
    batch.y = twice.data();
    conv2d(context, batch);
    EXPECT_TRUE(std::equal(whole.begin(), whole.end(), twice.begin()));
    EXPECT_TRUE(std::equal(whole.begin(), whole.end(), twice.begin() + static_cast<std::ptrdiff_t>(whole.size())));
  }
}

TEST(Conv2d, HandsOnNanToTheOutputsThatSeeItOnly) {
  ThreadPool pool(1);
  Case test({1, 9, 9, 1, 32, {.taps = 3, .stride = 2}, {.taps = 3, .stride = 2}});
  test.x[4 * 9 + 3] = std::nanf("");  // seen by kernel rows of outputs 1, 2 (vertical) and 1 (horizontal)
  for (const LinearLane& lane : runnable(linear_lanes())) {
    ExecContext context{&pool, lane.isa};
    auto y = test.output(16);
    conv2d(context, test.args(y));
    for (std::int64_t row = 0; row < 16; ++row) {
      const bool sees = (row / 4 == 1 || row / 4 == 2) && row % 4 == 1;
      EXPECT_EQ(std::isnan(y[size(row * 33 + 5)]), sees) << lane.name << " output " << row;
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
