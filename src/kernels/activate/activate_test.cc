#include <gtest/gtest.h>

#include <limits>

#include "kernels/activate/op.h"
#include "kernels/lane_report.h"
#include "kernels/testing.h"
#include "tensor/exact_math.h"

namespace oasr::kernels {
namespace {

[[maybe_unused]] const auto* const kLanes = report_lanes("activate", activate_lanes);

constexpr float kInf = std::numeric_limits<float>::infinity();

// Values of every size, the odd ones among them.
std::vector<float> some_floats(std::int64_t count, unsigned seed) {
  auto values = random_floats(count, seed, 20.0f);
  const float odd[] = {kInf, -kInf, std::nanf(""), 0.0f, -0.0f, 1e-45f, -1e-40f, 3e38f, -3e38f, 88.0f, -88.0f};
  for (std::size_t i = 0, at = seed % 7; at < values.size(); ++i, at += 11) values[at] = odd[i % std::size(odd)];
  return values;
}

std::vector<std::int64_t> widths() {
  std::vector<std::int64_t> d = {256, 512, 1000, 2048};
  for (std::int64_t i = 1; i <= 70; ++i) d.push_back(i);
  return d;
}

TEST(ActivateLanes, EqualTheReferenceForEveryWidthAndFunction) {
  for (const std::int64_t d : widths()) {
    for (unsigned number = 0; number < 5; ++number) {
      const auto x = some_floats(5 * (d + 2), static_cast<unsigned>(d));
      const auto args = [&](std::vector<float>& to) {
        return ActivateRowsArgs{.x = to.data(), .ldx = d + 2, .m = 5, .d = d, .activation = some_activation(number)};
      };
      auto expected = x;
      activate_rows_reference(args(expected));
      for (const ActivateLane& lane : runnable(activate_lanes())) {
        auto y = x;
        lane.activate_rows(args(y), 0, 2);
        lane.activate_rows(args(y), 2, 5);
        ASSERT_EQ(first_difference(y, expected), -1) << lane.name << " d " << d << " function " << number;
      }
    }
  }
}

TEST(GluLanes, EqualTheReferenceForEveryWidth) {
  for (const std::int64_t d : widths()) {
    const auto x = some_floats(5 * (2 * d + 3), static_cast<unsigned>(d));
    std::vector<float> expected(static_cast<std::size_t>(5 * (d + 1)), 77.0f);
    const auto empty = expected;
    const auto args = [&](std::vector<float>& to) {
      return GluArgs{.x = x.data(), .ldx = 2 * d + 3, .m = 5, .d = d, .y = to.data(), .ldy = d + 1};
    };
    glu_reference(args(expected));
    for (const ActivateLane& lane : runnable(activate_lanes())) {
      auto y = empty;
      lane.glu(args(y), 0, 2);
      lane.glu(args(y), 2, 5);
      ASSERT_EQ(first_difference(y, expected), -1) << lane.name << " d " << d;
    }
  }
}

TEST(Glu, GatesTheFirstHalfOfARowWithTheSecond) {
  const std::vector<float> x = {3, -2, 0, 200};
  std::vector<float> y(2);
  glu_reference({.x = x.data(), .ldx = 4, .m = 1, .d = 2, .y = y.data(), .ldy = 2});
  EXPECT_EQ(y, (std::vector<float>{1.5f, -2}));
}

TEST(Glu, HasTheRowsOfItsHeadFirst) {
  constexpr std::int64_t kRows = 9, kD = 70, kHead = 4, kLdy = kD + 1;
  const auto x = some_floats(kRows * 2 * kD, 4), head = some_floats(kHead * (kD + 2), 5);
  std::vector<float> gated(kRows * kLdy, 77.0f);
  glu_reference({.x = x.data(), .ldx = 2 * kD, .m = kRows, .d = kD, .y = gated.data(), .ldy = kLdy});
  ThreadPool pool(2);
  for (const std::int64_t ld_head : {std::int64_t{0}, kD + 2}) {
    std::vector<float> expected((kHead + kRows) * kLdy, 77.0f);
    for (std::int64_t m = 0; m < kHead; ++m) std::copy_n(head.data() + m * ld_head, kD, expected.data() + m * kLdy);
    std::ranges::copy(gated, expected.begin() + kHead * kLdy);
    std::vector<float> y(expected.size(), 77.0f);
    const GluArgs args{.x = x.data(), .ldx = 2 * kD, .m = kRows, .d = kD, .y = y.data(), .ldy = kLdy, .head = head.data(),
                       .head_rows = kHead, .ld_head = ld_head};
    glu_reference(args);
    EXPECT_EQ(first_difference(y, expected), -1) << "reference";
    for (const ActivateLane& lane : runnable(activate_lanes())) {
      ExecContext context{&pool, lane.isa};
      std::ranges::fill(y, 77.0f);
      glu(context, args);
      EXPECT_EQ(first_difference(y, expected), -1) << lane.name;
    }
  }
}

TEST(ActivateAndGlu, EqualTheReferenceForAnyNumberOfThreadsAndInPlace) {
  constexpr std::int64_t kRows = 500, kD = 70;
  const auto x = some_floats(kRows * 2 * kD, 4);
  auto swished = x, gated = x;
  activate_rows_reference({.x = swished.data(), .ldx = 2 * kD, .m = kRows, .d = 2 * kD, .activation = Activation::swish});
  glu_reference({.x = gated.data(), .ldx = 2 * kD, .m = kRows, .d = kD, .y = gated.data(), .ldy = 2 * kD});
  for (const int threads : {1, 2, 3, 16}) {
    ThreadPool pool(threads);
    for (const ActivateLane& lane : runnable(activate_lanes())) {
      EXPECT_EQ(activate_lane(lane.isa).name, lane.name);
      ExecContext context{&pool, lane.isa};
      auto y = x;
      activate_rows(context, {.x = y.data(), .ldx = 2 * kD, .m = kRows, .d = 2 * kD, .activation = Activation::swish});
      EXPECT_EQ(first_difference(y, swished), -1) << lane.name << " threads " << threads;
      y = x;
      glu(context, {.x = y.data(), .ldx = 2 * kD, .m = kRows, .d = kD, .y = y.data(), .ldy = 2 * kD});
      EXPECT_EQ(first_difference(y, gated), -1) << lane.name << " threads " << threads;
    }
  }
}

}  // namespace
}  // namespace oasr::kernels
