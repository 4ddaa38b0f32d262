#include "quantize/budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace oasr::quantize {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ParseBudget, ReadsLimitsAndSuffixes) {
  const Budget budget = parse_budget("wer=0.05,bytes=40M,ms=12.5").value();
  EXPECT_EQ(budget.wer, 0.05);
  EXPECT_EQ(budget.bytes, 40'000'000);
  EXPECT_EQ(budget.ms, 12.5);
  EXPECT_EQ(parse_budget("bytes=1.5K")->bytes, 1500);
  EXPECT_EQ(parse_budget("bytes=2G")->bytes, 2'000'000'000);
  EXPECT_EQ(parse_budget("bytes=7")->bytes, 7);
  EXPECT_EQ(parse_budget("bytes=7")->wer, std::nullopt);
  EXPECT_EQ(parse_budget("wer=0")->wer, 0);
}

TEST(ParseBudget, RefusesWhatIsNone) {
  for (const char* text :
       {"",        ",",      "wer",      "wer=",        "wer=0.1,",   "wer=x",   "wer=-0.1", "wer=nan",
        "wer=inf", "wer=1K", "wer=0.1x", "bytes=0",     "bytes=-3",   "bytes=K", "bytes=3T", "bytes=1e300G",
        "ms=0",    "ms=-1",  "layers=3", "wer=1,wer=2", "wer=1 ,ms=2"}) {
    const auto budget = parse_budget(text);
    ASSERT_FALSE(budget) << text;
    EXPECT_EQ(budget.error().code, ErrorCode::invalid_argument) << text;
    EXPECT_EQ(budget.error().where, "budget");
  }
  EXPECT_THAT(parse_budget("layers=3").error().what, HasSubstr("'layers' is none of"));
}

Result<GateReport> no_gate(std::span<const std::string>) {
  ADD_FAILURE() << "nothing was to be judged";
  return GateReport{};
}

TEST(ChooseLayers, NothingIsQuantizedForLimitsThatAreMet) {
  const std::vector<BudgetItem> items = {{"a", 1, 10, 1}};
  const auto choice = choose_layers(items, {100, 10}, {.wer = {}, .bytes = 100, .ms = 10}, no_gate).value();
  EXPECT_THAT(choice.quantized, ElementsAre());
  EXPECT_THAT(choice.full_precision, ElementsAre("a"));
  EXPECT_EQ(choice.cost.bytes, 100);
}

TEST(ChooseLayers, TakesWhatCostsLittleForWhatItSaves) {
  const std::vector<BudgetItem> items = {{"a", 5, 10, 1}, {"b", 1, 10, 1}, {"c", 2, 10, 1}, {"d", 1, 10, 1}};
  const auto choice = choose_layers(items, {100, 10}, {.wer = {}, .bytes = 80, .ms = {}}, no_gate).value();
  EXPECT_THAT(choice.quantized, ElementsAre("b", "d"));
  EXPECT_THAT(choice.full_precision, ElementsAre("a", "c"));
  EXPECT_EQ(choice.effect, 2);
  EXPECT_EQ(choice.least_effect, 2);
  EXPECT_EQ(choice.cost.bytes, 80);
  EXPECT_EQ(choice.cost.ms, 8);
  // Of equals the first.
  const std::vector<BudgetItem> equal = {{"a", 1, 10, 1}, {"b", 1, 10, 1}};
  EXPECT_THAT(choose_layers(equal, {20, 2}, {.wer = {}, .bytes = 15, .ms = {}}, no_gate)->quantized,
              ElementsAre("a"));
}

TEST(ChooseLayers, UndoesWhatGreedTookTooMuchOf) {
  // Greed takes a (0.1 a byte), then needs b, which is enough alone.
  const std::vector<BudgetItem> items = {{"a", 0.9, 9, 0}, {"b", 1.5, 10, 0}};
  EXPECT_THAT(choose_layers(items, {100, 0}, {.wer = {}, .bytes = 90, .ms = {}}, no_gate)->quantized,
              ElementsAre("b"));
  // Greed takes p, then s; q in the place of p costs less.
  const std::vector<BudgetItem> more = {{"p", 4, 8, 0}, {"q", 3.9, 6, 0}, {"s", 3, 4, 0}};
  EXPECT_THAT(choose_layers(more, {100, 0}, {.wer = {}, .bytes = 90, .ms = {}}, no_gate)->quantized,
              ElementsAre("q", "s"));
}

TEST(ChooseLayers, LooksAtWhatALayerSavesNotAtItsEffectAlone) {
  std::vector<BudgetItem> items(10, {"small", 1, 1, 0});
  items.push_back({"large", 2, 10, 0});
  EXPECT_THAT(choose_layers(items, {100, 0}, {.wer = {}, .bytes = 90, .ms = {}}, no_gate)->quantized,
              ElementsAre("large"));
  // What it saves beyond the limit is worth nothing.
  const std::vector<BudgetItem> beyond = {{"a", 1, 9, 0}, {"b", 1, 9, 0}, {"huge", 8, 100, 0}};
  EXPECT_THAT(choose_layers(beyond, {200, 0}, {.wer = {}, .bytes = 190, .ms = {}}, no_gate)->quantized,
              ElementsAre("a", "b"));
}

TEST(ChooseLayers, LeavesOutALayerThatCostsWhatIsLimited) {
  const std::vector<BudgetItem> items = {{"a", 0, 50, -1}, {"b", 1, 20, 2}, {"c", 1, -5, 5}};
  EXPECT_THAT(choose_layers(items, {100, 10}, {.wer = {}, .bytes = 80, .ms = {}}, no_gate)->quantized,
              ElementsAre("a"));
  EXPECT_THAT(choose_layers(items, {100, 10}, {.wer = {}, .bytes = {}, .ms = 5}, no_gate)->quantized,
              ElementsAre("c"));
  EXPECT_THAT(choose_layers(items, {100, 10}, {.wer = {}, .bytes = 80, .ms = 8}, no_gate)->quantized,
              ElementsAre("b"));
}

TEST(ChooseLayers, RefusesLimitsThatCanNotBeMetWithTheNumbers) {
  const std::vector<BudgetItem> items = {{"a", 1, 10, 1}, {"b", 1, 10, 1}};
  const auto unmet = [&](const Budget& budget) {
    return choose_layers(items, {100, 10}, budget, no_gate).value().unmet;
  };
  EXPECT_THAT(unmet({.wer = {}, .bytes = 79, .ms = {}}), HasSubstr("2 of 2 layers quantized: 80 bytes"));
  EXPECT_NE(unmet({.wer = {}, .bytes = 90, .ms = 7.9}), "");
  EXPECT_EQ(unmet({.wer = {}, .bytes = 90, .ms = 8}), "");
}

// Every subset of small random instances.
TEST(ChooseLayers, IsAsNearToTheBestAsPromised) {
  std::uint32_t random = 7;
  const auto below = [&](int limit) {
    random = random * 1664525u + 1013904223u;
    return static_cast<int>((std::uint64_t{random >> 8} * static_cast<unsigned>(limit)) >> 24);
  };
  for (int round = 0; round < 600; ++round) {
    std::vector<BudgetItem> items;
    int bytes = 0, ms = 0;
    for (int i = 0; i < 10; ++i) {
      items.push_back({std::to_string(i), 1.0 + below(50), below(12), static_cast<double>(below(12))});
      bytes += static_cast<int>(items.back().bytes_saved);
      ms += static_cast<int>(items.back().ms_saved);
    }
    const int save_bytes = round % 3 == 1 ? 0 : 1 + below(bytes),
              save_ms = round % 3 == 0 ? 0 : 1 + below(ms);
    Budget budget;
    if (save_bytes > 0) budget.bytes = 1000 - save_bytes;
    if (save_ms > 0) budget.ms = 1000 - save_ms;
    double best = std::numeric_limits<double>::infinity();
    for (unsigned set = 0; set < 1u << items.size(); ++set) {
      double effect = 0, saved_ms = 0;
      std::int64_t saved_bytes = 0;
      for (std::size_t i = 0; i < items.size(); ++i) {
        if ((set >> i & 1) == 0) continue;
        effect += items[i].effect;
        saved_bytes += items[i].bytes_saved;
        saved_ms += items[i].ms_saved;
      }
      if (saved_bytes >= save_bytes && saved_ms >= save_ms) best = std::min(best, effect);
    }
    const auto choice = choose_layers(items, {1000, 1000}, budget, no_gate).value();
    EXPECT_LE(choice.cost.bytes, 1000 - save_bytes);
    EXPECT_LE(choice.cost.ms, 1000 - save_ms);
    EXPECT_GE(choice.effect, best);
    EXPECT_LE(choice.least_effect, best * (1 + 1e-12));
    // At least a unit was open before the last layer, of limits that count as 1 each.
    const int limits = (save_bytes > 0) + (save_ms > 0);
    EXPECT_LE(choice.effect, best * (1 + std::log(limits * std::max(save_bytes, save_ms))) * (1 + 1e-12));
  }
}

// A gate that passes while the layers' effects sum to no more than `limit`.
struct Gate {
  double limit;
  std::span<const BudgetItem> items;
  int evaluations = 0;

  Result<GateReport> operator()(std::span<const std::string> full_precision) {
    ++evaluations;
    double sum = 0;
    for (const BudgetItem& item : items) {
      if (std::ranges::find(full_precision, item.path) == full_precision.end()) sum += item.effect;
    }
    GateReport report;
    report.passed = sum <= limit;
    report.increase = sum;
    report.verdict = report.passed ? "Passed." : "Failed by the fake. " + std::to_string(sum);
    return report;
  }
};

TEST(ChooseLayers, QuantizesAsManyLayersAsWordErrorAllows) {
  const std::vector<BudgetItem> items = {
      {"a", 4, 10, 1}, {"b", 1, 10, 1}, {"c", 2, 10, 1}, {"d", 8, 10, 1}, {"e", 1, 10, 1}};
  for (const auto& [limit, count] :
       std::vector<std::pair<double, std::size_t>>{{1, 1}, {2, 2}, {3.9, 2}, {4, 3}, {8, 4}, {16, 5}}) {
    Gate gate{limit, items};
    const auto choice =
        choose_layers(items, {100, 10}, {.wer = 0.1, .bytes = {}, .ms = {}}, std::ref(gate)).value();
    EXPECT_EQ(choice.quantized.size(), count) << limit;
    EXPECT_TRUE(choice.gate->passed);
    EXPECT_EQ(choice.gate->increase, choice.effect);
    EXPECT_LE(gate.evaluations, 4);  // all of them, then bisection of 5 lengths
  }
  Gate gate{2, items};
  EXPECT_THAT(choose_layers(items, {100, 10}, {.wer = 0.1, .bytes = {}, .ms = {}}, std::ref(gate))->quantized,
              ElementsAre("b", "e"));
  Gate none{0.5, items};
  const auto failed = choose_layers(items, {100, 10}, {.wer = 0.1, .bytes = {}, .ms = {}}, std::ref(none)).value();
  EXPECT_THAT(failed.unmet, HasSubstr("even with one layer quantized, the one of least effect"));
  EXPECT_EQ(failed.quantized.size(), 1u);
  EXPECT_THAT(failed.gate->verdict, HasSubstr("Failed by the fake. 1"));
}

TEST(ChooseLayers, WhatBytesAskForHasToPass) {
  const std::vector<BudgetItem> items = {{"a", 4, 10, 1}, {"b", 1, 10, 1}, {"c", 2, 10, 1}};
  const Budget budget{.wer = 0.1, .bytes = 80, .ms = {}};
  Gate gate{3, items};
  const auto choice = choose_layers(items, {100, 10}, budget, std::ref(gate)).value();
  EXPECT_THAT(choice.quantized, ElementsAre("b", "c"));
  EXPECT_EQ(choice.gate->increase, 3);
  EXPECT_EQ(gate.evaluations, 1);
  Gate strict{2.9, items};
  const auto failed = choose_layers(items, {100, 10}, budget, std::ref(strict)).value();
  EXPECT_THAT(failed.unmet, HasSubstr("2 of 3 layers quantized: 80 bytes"));
  EXPECT_THAT(failed.gate->verdict, HasSubstr("Failed by the fake."));
}

TEST(ChooseLayers, AnErrorOfAnEvaluationEndsIt) {
  const std::vector<BudgetItem> items = {{"a", 4, 10, 1}};
  const auto evaluate = [](std::span<const std::string>) -> Result<GateReport> {
    return unexpected(ErrorCode::cancelled, "stopped");
  };
  for (const Budget& budget :
       {Budget{.wer = 0.1, .bytes = {}, .ms = {}}, Budget{.wer = 0.1, .bytes = 95, .ms = {}}}) {
    EXPECT_EQ(choose_layers(items, {100, 10}, budget, evaluate).error().code, ErrorCode::cancelled);
  }
}

}  // namespace
}  // namespace oasr::quantize
