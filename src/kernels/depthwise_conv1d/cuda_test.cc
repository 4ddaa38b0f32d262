#include <gtest/gtest.h>

#include <limits>

#include "kernels/cuda/testing.h"
#include "kernels/depthwise_conv1d/op.h"
#include "kernels/testing.h"

namespace oasr::kernels {
namespace {

class DepthwiseOnGpu : public OnGpu {
 protected:
  void expect_the_reference(std::int64_t frames, std::int64_t channels, std::int64_t taps, bool with_bias,
                            float odd) {
    const std::int64_t ldx = channels + 3, ldy = channels + 1;
    auto x = random_floats((frames + taps - 1) * ldx, 1);
    x[static_cast<std::size_t>((frames + taps - 1) / 2 * ldx)] = odd;
    const auto w = random_floats(channels * taps, 2), bias = random_floats(channels, 3);
    std::vector<float> y(static_cast<std::size_t>(frames * ldy), 77.0f);
    const auto pack = [&] {
      return DepthwiseWeight::pack(channels, taps, [&](std::int64_t c, std::span<float> row) {
        std::copy_n(w.data() + c * taps, row.size(), row.data());
      });
    };
    const DepthwiseWeight weight = pack();
    DepthwiseWeight placed = pack();
    placed.place(*gpu_);
    auto x_there = upload(x), bias_there = upload(bias), y_there = upload(y);
    DepthwiseConv1dArgs args{.x = x.data(),
                             .ldx = ldx,
                             .frames = frames,
                             .weight = &weight,
                             .bias = with_bias ? bias.data() : nullptr,
                             .y = y.data(),
                             .ldy = ldy};
    depthwise_conv1d_reference(args);
    args.x = x_there.data();
    args.weight = &placed;
    args.bias = with_bias ? bias_there.data() : nullptr;
    args.y = y_there.data();
    depthwise_conv1d(context_, args);
    EXPECT_EQ(first_difference(y_there.values(), y), -1)
        << "C " << channels << " k " << taps << " frames " << frames << " bias " << with_bias << " with "
        << odd;
  }
};

TEST_F(DepthwiseOnGpu, EqualsTheReferenceForEveryShape) {
  for (const std::int64_t channels : {1, 3, 31, 32, 33, 64, 100, 256}) {
    for (const std::int64_t taps : {1, 2, 3, 15, 31, 33}) {
      for (const std::int64_t frames : {1, 2, 7, 8, 9, 23, 31, 32, 33, 130}) {
        expect_the_reference(frames, channels, taps, (frames + taps) % 2 == 0, 0.5f);
      }
    }
  }
  expect_the_reference(1500, 512, 15, true, 0.5f);
  expect_the_reference(1100, 256, 31, true, 0.5f);  // enough of both for blocks of many frames
  expect_the_reference(70, 40, 300, true, 0.5f);    // taps that shared memory does not take
}

TEST_F(DepthwiseOnGpu, TreatsOddValuesLikeTheReference) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const float odd : {kInf, -kInf, std::nanf(""), 3e38f, 1e-45f, -1e-40f, -0.0f}) {
    for (const std::int64_t frames : {1, 12, 40}) expect_the_reference(frames, 21, 5, true, odd);
  }
}

}  // namespace
}  // namespace oasr::kernels
