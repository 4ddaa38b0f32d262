#include "kernels/peak/op.h"

#include <gtest/gtest.h>

#include <chrono>

#include "kernels/scaled_mm/op.h"
#include "kernels/testing.h"

namespace oasr::kernels {
namespace {

TEST(Peak, IsOfTheLaneThatTheProductsRun) {
  for (const auto& row : isa_names()) {
    EXPECT_EQ(peak_lane(PeakKind::int8, row.value).name, scaled_mm_lane(row.value).name) << row.name;
    EXPECT_EQ(peak_lane(PeakKind::float32, row.value).name, linear_lane(row.value).name) << row.name;
  }
}

TEST(Peak, CountsTheOperationsOfItsRounds) {
  for (const PeakKind kind : {PeakKind::int8, PeakKind::float32}) {
    for (const PeakLane& lane : runnable(peak_lanes(kind))) {
      const double one = lane.run(1);
      EXPECT_GT(one, 0) << lane.name;
      EXPECT_EQ(lane.run(7), 7 * one) << lane.name;
    }
  }
}

// A loop that the compiler removed, or that waits for itself, would be far from these.
TEST(Peak, IsBetweenWhatNoProcessorReachesAndWhatEveryOneDoes) {
  for (const PeakKind kind : {PeakKind::int8, PeakKind::float32}) {
    for (const PeakLane& lane : runnable(peak_lanes(kind))) {
      const double gops = peak_gops(kind, lane.isa, 0.01);
      std::printf("%s %s: %.1f GOPS\n", std::string(enum_name(peak_kind_names(), kind)).c_str(),
                  std::string(lane.name).c_str(), gops);
      const double most = lane.isa == Isa::amx ? 10'000 : 3'000;
      EXPECT_LT(gops, lane.isa == Isa::scalar ? 200 : most) << lane.name;
      EXPECT_GT(gops, lane.isa == Isa::scalar ? 0.001 : 1) << lane.name;
    }
  }
}

TEST(Peak, TakesTheTimeThatIsAskedFor) {
  const auto begin = std::chrono::steady_clock::now();
  peak_gops(PeakKind::int8, Isa::scalar, 0.05);
  EXPECT_GE(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), 0.05);
}

}  // namespace
}  // namespace oasr::kernels
