#include <gtest/gtest.h>

#include <limits>

#include "kernels/depthwise_conv1d/op.h"
#include "kernels/lane_report.h"
#include "kernels/testing.h"

namespace oasr::kernels {
namespace {

[[maybe_unused]] const auto* const kLanes = report_lanes("depthwise_conv1d", depthwise_conv1d_lanes);

struct Case {
  Case(std::int64_t frames, std::int64_t channels, std::int64_t taps, unsigned seed)
      : frames(frames), channels(channels), taps(taps), ldx(channels + 3), ldy(channels + 1),
        x(random_floats((frames + taps - 1) * ldx, seed)), w(random_floats(channels * taps, seed + 1)),
        bias(random_floats(channels, seed + 2)), y(static_cast<std::size_t>(frames * ldy), 77.0f),
        weight(DepthwiseWeight::pack(channels, taps, [this](std::int64_t c, std::span<float> row) {
          std::copy_n(w.data() + c * this->taps, row.size(), row.data());
        })) {}
  DepthwiseConv1dArgs args(std::vector<float>& to, bool with_bias = true) const {
    return {.x = x.data(), .ldx = ldx, .frames = frames, .weight = &weight,
            .bias = with_bias ? bias.data() : nullptr, .y = to.data(), .ldy = ldy};
  }
  std::int64_t frames, channels, taps, ldx, ldy;
  std::vector<float> x, w, bias, y;  // w: [C, 1, k]
  DepthwiseWeight weight;
};

TEST(DepthwiseConv1d, EqualsItsDefinitionOnTheStoredWeight) {
  Case test(9, 5, 4, 1);
  depthwise_conv1d_reference(test.args(test.y));
  for (std::int64_t t = 0; t < test.frames; ++t) {
    for (std::int64_t c = 0; c < test.channels; ++c) {
      float sum = 0;
      for (std::int64_t tap = 0; tap < test.taps; ++tap) {
        sum = std::fma(test.x[static_cast<std::size_t>((t + tap) * test.ldx + c)],
                       test.w[static_cast<std::size_t>(c * test.taps + tap)], sum);
      }
      EXPECT_EQ(test.y[static_cast<std::size_t>(t * test.ldy + c)], sum + test.bias[static_cast<std::size_t>(c)]);
    }
  }
}

TEST(DepthwiseConv1dLanes, EqualTheReferenceForEveryShape) {
  for (const std::int64_t channels : {1, 3, 4, 7, 8, 15, 16, 17, 33, 64, 100, 256}) {
    for (const std::int64_t taps : {1, 2, 3, 15, 31, 33}) {
      for (const std::int64_t frames : {1, 2, 7, 8, 9, 23}) {
        for (const bool with_bias : {true, false}) {
          Case test(frames, channels, taps, static_cast<unsigned>(channels * 100 + taps));
          auto expected = test.y;
          depthwise_conv1d_reference(test.args(expected, with_bias));
          for (const DepthwiseConv1dLane& lane : runnable(depthwise_conv1d_lanes())) {
            auto y = test.y;
            lane.run(test.args(y, with_bias), 0, frames / 2);
            lane.run(test.args(y, with_bias), frames / 2, frames);
            ASSERT_EQ(first_difference(y, expected), -1)
                << lane.name << " C " << channels << " k " << taps << " frames " << frames;
          }
        }
      }
    }
  }
}

TEST(DepthwiseConv1dLanes, TreatOddValuesLikeTheReference) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const float odd : {kInf, -kInf, std::nanf(""), 3e38f, 1e-45f, -1e-40f, -0.0f}) {
    Case test(12, 21, 5, 9);
    test.x[static_cast<std::size_t>(7 * test.ldx + 20)] = odd;
    test.x[static_cast<std::size_t>(7 * test.ldx + 2)] = odd;
    auto expected = test.y;
    depthwise_conv1d_reference(test.args(expected));
    for (const DepthwiseConv1dLane& lane : runnable(depthwise_conv1d_lanes())) {
      auto y = test.y;
      lane.run(test.args(y), 0, test.frames);
      EXPECT_EQ(first_difference(y, expected), -1) << lane.name << " with " << odd;
    }
  }
}

TEST(DepthwiseConv1d, EqualsTheReferenceForAnyNumberOfThreads) {
  for (const int threads : {1, 2, 3, 16}) {
    ThreadPool pool(threads);
    Case test(1000, 256, 15, 5);
    auto expected = test.y;
    depthwise_conv1d_reference(test.args(expected));
    for (const DepthwiseConv1dLane& lane : runnable(depthwise_conv1d_lanes())) {
      EXPECT_EQ(depthwise_conv1d_lane(lane.isa).name, lane.name);
      ExecContext context{&pool, lane.isa};
      auto y = test.y;
      depthwise_conv1d(context, test.args(y));
      EXPECT_EQ(first_difference(y, expected), -1) << lane.name << " threads " << threads;
    }
  }
}

TEST(DepthwiseConv1d, GivesAStreamTheBitsOfTheWhole) {
  ThreadPool pool(2);
  ExecContext context{&pool, detected_isa()};
  Case test(100, 48, 15, 3);
  auto whole = test.y, parts = test.y;
  depthwise_conv1d(context, test.args(whole));
  for (std::int64_t t = 0, size = 1; t < test.frames; t += size, size = size % 16 + 3) {
    DepthwiseConv1dArgs args = test.args(parts);
    args.x += t * args.ldx;
    args.y += t * args.ldy;
    args.frames = std::min(size, test.frames - t);
    depthwise_conv1d(context, args);
  }
  EXPECT_EQ(first_difference(parts, whole), -1);
}

TEST(DepthwiseWeight, GivesTheStoredTapsBack) {
  const Case test(1, 6, 15, 2);
  std::vector<float> row(15);
  for (std::int64_t c = 0; c < 6; ++c) {
    test.weight.unpack_row(c, row);
    EXPECT_TRUE(std::equal(row.begin(), row.end(), test.w.begin() + c * 15));
  }
}

}  // namespace
}  // namespace oasr::kernels
