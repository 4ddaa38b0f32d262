#include "quantize/back_off.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace oasr::quantize {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Layers "l1" (the most sensitive) to "l<count>", a hundred bytes times their rank.
std::vector<RankedLayer> ranking(int count) {
  std::vector<RankedLayer> layers;
  for (int i = 1; i <= count; ++i) layers.push_back({"l" + std::to_string(i), 100 * i});
  return layers;
}

GateReport report(bool passed, double increase = 0.5) {
  GateReport gate;
  gate.passed = passed;
  gate.increase = passed ? 0 : increase;
  gate.verdict = passed ? "Passed." : "Failed.";
  return gate;
}

// A gate that passes as `passes` says of the number of layers at full precision, which are a beginning.
struct Gate {
  std::function<bool(std::size_t)> passes;
  std::vector<std::size_t> asked = {};

  Result<GateReport> run(int layers, int evaluations = 16) {
    const auto evaluate = [&](std::span<const std::string> full) -> Result<GateReport> {
      for (std::size_t i = 0; i < full.size(); ++i) EXPECT_EQ(full[i], "l" + std::to_string(i + 1));
      asked.push_back(full.size());
      GateReport gate = report(passes(full.size()));
      gate.utterances = static_cast<std::int64_t>(full.size());  // tells whose report it is
      return gate;
    };
    return back_off(report(false), ranking(layers), evaluate, evaluations);
  }
};

// Passes once `rank` has returned.
Gate culprit(std::size_t rank) {
  return {[=](std::size_t count) { return count >= rank; }};
}

TEST(BackOff, SaysWhatTheLayersGet) {
  const std::vector<RankedLayer> ranking = {{.path = "a", .bytes = 4}, {.path = "b", .bytes = 2}};
  const Evaluate evaluate = [](std::span<const std::string> returned) -> Result<GateReport> {
    GateReport report;
    report.passed = !returned.empty();
    return report;
  };
  GateReport first;
  first.returned_to = "int8_w8a8";
  const auto found = back_off(first, ranking, evaluate).value();
  EXPECT_EQ(found.returned_to, "int8_w8a8");
  EXPECT_THAT(found.verdict, ::testing::HasSubstr("1 of the most sensitive layers at int8_w8a8 ('a'; +4 bytes)"));
}

TEST(BackOff, ReturnsExactlyThePlantedCulprit) {
  Gate gate = culprit(1);
  const GateReport found = gate.run(40).value();
  EXPECT_TRUE(found.passed);
  ASSERT_EQ(found.back_off.size(), 1u);
  EXPECT_THAT(found.back_off[0].layers, ElementsAre("l1"));
  EXPECT_EQ(found.back_off[0].bytes, 100);
  EXPECT_TRUE(found.back_off[0].passed);
  EXPECT_EQ(found.verdict,
            "Passed. It passes with 1 of the most sensitive layers at full precision ('l1'; +100 bytes).");
}

TEST(BackOff, FindsTheShortestBeginningThatPasses) {
  Gate gate = culprit(5);
  const GateReport found = gate.run(40).value();
  EXPECT_TRUE(found.passed);
  EXPECT_THAT(gate.asked, ElementsAre(1, 2, 4, 8, 6, 5));
  ASSERT_EQ(found.back_off.size(), 6u);
  EXPECT_FALSE(found.back_off[0].passed);
  EXPECT_EQ(found.back_off[0].increase, 0.5);
  EXPECT_EQ(found.back_off[5].bytes, 1500);
  EXPECT_THAT(found.verdict, HasSubstr("with 5 of the most sensitive layers"));
  for (std::size_t rank = 1; rank <= 40; ++rank) {
    Gate other = culprit(rank);
    const GateReport of_it = other.run(40).value();
    EXPECT_THAT(of_it.verdict, HasSubstr("with " + std::to_string(rank) + " of the"));
    EXPECT_EQ(of_it.utterances, static_cast<std::int64_t>(rank));
  }
}

TEST(BackOff, OfAGateThatIsNotMonotoneOneThatPassesAndNotWithALayerLess) {
  for (unsigned pattern = 0; pattern < 1u << 11; ++pattern) {
    Gate gate{[=](std::size_t count) { return count == 12 || (pattern >> (count - 1) & 1) != 0; }};
    const GateReport found = gate.run(12).value();
    ASSERT_TRUE(found.passed);
    std::set<std::size_t> passed, failed = {0};
    for (const BackOffStep& step : found.back_off) (step.passed ? passed : failed).insert(step.layers.size());
    EXPECT_THAT(found.verdict, HasSubstr("with " + std::to_string(*passed.begin()) + " of"));
    EXPECT_TRUE(failed.contains(*passed.begin() - 1));
  }
}

TEST(BackOff, EndsWhenNothingHelps) {
  Gate gate{[](std::size_t) { return false; }};
  const GateReport found = gate.run(11).value();
  EXPECT_FALSE(found.passed);
  EXPECT_THAT(gate.asked, ElementsAre(1, 2, 4, 8, 11));
  EXPECT_EQ(found.back_off.size(), 5u);
  EXPECT_EQ(found.verdict, "Failed. It fails with all layers at full precision, too.");
}

TEST(BackOff, EndsAfterItsEvaluations) {
  Gate gate = culprit(5);
  const GateReport rising = gate.run(40, 3).value();
  EXPECT_FALSE(rising.passed);
  EXPECT_THAT(gate.asked, ElementsAre(1, 2, 4));
  EXPECT_THAT(rising.verdict,
              HasSubstr("After 3 evaluations it still fails with 4 of the most sensitive layers"));
  const GateReport falling = gate.run(40, 5).value();
  EXPECT_TRUE(falling.passed);
  EXPECT_THAT(falling.verdict, HasSubstr("with 6 of the most sensitive layers"));
  EXPECT_THAT(falling.verdict, HasSubstr("Fewer were not tried after 5 evaluations."));
  EXPECT_EQ(gate.run(40, 0)->verdict, "Failed. After 0 evaluations it still fails.");
}

TEST(BackOff, HasNothingToDoForAGateThatPassedOrWithoutLayers) {
  const auto evaluate = [](std::span<const std::string>) -> Result<GateReport> {
    ADD_FAILURE();
    return report(true);
  };
  EXPECT_TRUE(back_off(report(true), ranking(3), evaluate)->passed);
  EXPECT_EQ(back_off(report(false), {}, evaluate)->verdict, "Failed.");
}

TEST(BackOff, AnErrorOfAnEvaluationEndsIt) {
  for (const std::size_t when : {1u, 4u, 6u}) {  // rising, rising, falling
    const auto evaluate = [&](std::span<const std::string> full) -> Result<GateReport> {
      if (full.size() == when) return unexpected(ErrorCode::cancelled, "stopped");
      return report(full.size() >= 5);
    };
    const auto found = back_off(report(false), ranking(40), evaluate);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, ErrorCode::cancelled);
  }
}

}  // namespace
}  // namespace oasr::quantize
