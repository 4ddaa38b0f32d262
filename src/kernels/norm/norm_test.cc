#include <gtest/gtest.h>

#include <limits>

#include "kernels/activate/op.h"
#include "kernels/lane_report.h"
#include "kernels/norm/op.h"
#include "kernels/testing.h"

namespace oasr::kernels {
namespace {

[[maybe_unused]] const auto* const kLanes = report_lanes("layer_norm", layer_norm_lanes);

struct Case {
  Case(std::int64_t m, std::int64_t d, unsigned seed)
      : m(m), d(d), x(random_floats(m * (d + 2), seed)), gamma(random_floats(d, seed + 1)),
        beta(random_floats(d, seed + 2)), y(static_cast<std::size_t>(m * (d + 1)), 77.0f) {}
  LayerNormArgs args(std::vector<float>& to) const {
    return {.x = x.data(), .ldx = d + 2, .m = m, .d = d, .gamma = gamma.data(), .beta = beta.data(),
            .y = to.data(), .ldy = d + 1};
  }
  std::int64_t m, d;
  std::vector<float> x, gamma, beta, y;
};

TEST(LayerNormLanes, EqualTheReferenceForEveryWidth) {
  std::vector<std::int64_t> widths = {384, 512, 768, 1024, 1280, 1999};
  for (std::int64_t d = 1; d <= 67; ++d) widths.push_back(d);
  for (const std::int64_t d : widths) {
    Case test(5, d, static_cast<unsigned>(d));
    auto expected = test.y;
    layer_norm_reference(test.args(expected));
    for (const LayerNormLane& lane : runnable(layer_norm_lanes())) {
      auto y = test.y;
      lane.run(test.args(y), 0, 2);
      lane.run(test.args(y), 2, 5);
      EXPECT_EQ(first_difference(y, expected), -1) << lane.name << " d " << d;
    }
  }
}

TEST(LayerNorm, EqualsTheReferenceForAnyNumberOfThreadsAndInPlace) {
  for (const int threads : {1, 2, 3, 16}) {
    ThreadPool pool(threads);
    Case test(1000, 96, 5);
    auto expected = test.x;
    LayerNormArgs args = test.args(expected);
    args.x = expected.data();
    args.ldy = args.ldx;
    layer_norm_reference(args);
    for (const LayerNormLane& lane : runnable(layer_norm_lanes())) {
      EXPECT_EQ(layer_norm_lane(lane.isa).name, lane.name);
      ExecContext context{&pool, lane.isa};
      auto y = test.x;
      args.x = args.y = y.data();
      layer_norm(context, args);
      EXPECT_EQ(first_difference(y, expected), -1) << lane.name << " threads " << threads;
    }
  }
}

TEST(LayerNorm, ActivatesWhatItHasNormalised) {
  ThreadPool pool(3);
  for (const Activation activation : {Activation::gelu, Activation::swish, Activation::relu, Activation::tanh}) {
    Case test(1000, 96, 5);
    auto expected = test.y;
    layer_norm_reference(test.args(expected));
    const auto plain = expected;
    activate_rows_reference({.x = expected.data(), .ldx = 97, .m = 1000, .d = 96, .activation = activation});
    EXPECT_NE(first_difference(plain, expected), -1);
    auto args = test.args(test.y);
    args.activation = activation;
    layer_norm_reference(args);
    EXPECT_EQ(first_difference(test.y, expected), -1) << "reference";
    for (const LayerNormLane& lane : runnable(layer_norm_lanes())) {
      ExecContext context{&pool, lane.isa};
      std::fill(test.y.begin(), test.y.end(), 77.0f);
      layer_norm(context, args);
      EXPECT_EQ(first_difference(test.y, expected), -1) << lane.name;
    }
  }
}

TEST(LayerNormLanes, TreatOddValuesLikeTheReference) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const float odd : {kInf, -kInf, std::nanf(""), 3e38f, 1e-45f, -1e-40f, -0.0f}) {
    Case test(3, 37, 9);
    test.x[45] = odd;
    auto expected = test.y;
    layer_norm_reference(test.args(expected));
    for (const LayerNormLane& lane : runnable(layer_norm_lanes())) {
      auto y = test.y;
      lane.run(test.args(y), 0, 3);
      EXPECT_EQ(first_difference(y, expected), -1) << lane.name << " with " << odd;
    }
  }
}

TEST(LayerNorm, IsCloseToTheExactValue) {
  Case test(20, 512, 3);
  layer_norm_reference(test.args(test.y));
  for (std::int64_t m = 0; m < test.m; ++m) {
    double mean = 0, variance = 0;
    const float* x = test.x.data() + m * (test.d + 2);
    for (std::int64_t i = 0; i < test.d; ++i) mean += x[i] / static_cast<double>(test.d);
    for (std::int64_t i = 0; i < test.d; ++i) variance += (x[i] - mean) * (x[i] - mean) / static_cast<double>(test.d);
    for (std::int64_t i = 0; i < test.d; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const double exact = (x[i] - mean) / std::sqrt(variance + 1e-5) * test.gamma[at] + test.beta[at];
      // A few roundings of values of size |x|, |gamma| and |beta| below 5 each.
      EXPECT_NEAR(test.y[static_cast<std::size_t>(m * (test.d + 1) + i)], exact, 25 * 4 * 0x1p-24);
    }
  }
}

}  // namespace
}  // namespace oasr::kernels
