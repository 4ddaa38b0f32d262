#include "oasr/kernel_bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>

#include "api/kernel_bench/run.h"
#include "kernels/linear/op.h"
#include "kernels/norm/op.h"
#include "kernels/quantize/op.h"
#include "kernels/scaled_mm/op.h"
#include "testing/environment.h"

namespace oasr {
namespace {

using kernel_bench::Case;
using kernel_bench::Place;
using kernel_bench::Problem;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

KernelBenchOptions tiny(std::vector<std::string> ops, std::vector<KernelShape> shapes) {
  KernelBenchOptions options;
  options.ops = std::move(ops);
  options.shapes = std::move(shapes);
  options.device = "cpu";
  options.threads = 2;
  options.repeat = 3;
  return options;
}

// "scaled_mm avx2", … of the lanes that this processor has.
template <class Lane>
std::vector<std::string> names(const std::string& op, std::span<const Lane> lanes) {
  std::vector<std::string> all = {op + " reference"};
  for (const Lane& lane : lanes) {
    if (isa_supported(lane.isa) && isa_covers(detected_isa(), lane.isa)) all.push_back(op + " " + std::string(lane.name));
  }
  return all;
}

std::vector<std::string> kernels_of(const KernelBenchReport& report) {
  std::vector<std::string> all;
  for (const KernelTime& time : report.times) all.push_back(time.kernel);
  return all;
}

void expect_measured(const KernelTime& time) {
  EXPECT_EQ(time.missing, "") << time.kernel;
  EXPECT_EQ(time.rounds, 3) << time.kernel;
  EXPECT_GE(time.calls, 1) << time.kernel;
  EXPECT_GT(time.min_us, 0) << time.kernel;
  EXPECT_LE(time.min_us, time.median_us) << time.kernel;
  EXPECT_LE(time.median_us, time.max_us) << time.kernel;
  EXPECT_GT(time.bytes, 0) << time.kernel;
}

TEST(KernelBench, MeasuresEveryLaneOfAProductBesideTheDefinitionAndThePeak) {
  const auto report = bench_kernels(tiny({"scaled_mm"}, {{3, 20, 33}}));
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_THAT(kernels_of(*report), UnorderedElementsAreArray(names("scaled_mm", kernels::scaled_mm_lanes())));
  const std::string best = "scaled_mm " + std::string(kernels::scaled_mm_lane(detected_isa()).name);
  for (const KernelTime& time : report->times) {
    expect_measured(time);
    EXPECT_EQ(time.chosen, time.kernel == best) << time.kernel;
    EXPECT_EQ(time.operations, 2.0 * 3 * 20 * 33);
    EXPECT_EQ(time.bytes, 3 * 33 + 20 * 33 + 4 * 3 * 20);
    const bool lane = time.kernel != "scaled_mm reference";
    EXPECT_EQ(report->ceilings.gops(time.ceiling) > 0, lane) << time.kernel;
    EXPECT_EQ(time.roof_us > 0, lane) << time.kernel;
  }
  EXPECT_EQ(report->device, "cpu");
  EXPECT_EQ(report->threads, 2);
  EXPECT_GT(report->ceilings.copy_gbs, 0.1);
  EXPECT_LT(report->ceilings.copy_gbs, 5000);
}

TEST(KernelBench, MeasuresTheOtherOperations) {
  const auto linear = bench_kernels(tiny({"linear"}, {{2, 33, 20}}));
  ASSERT_TRUE(linear) << linear.error().message();
  EXPECT_THAT(kernels_of(*linear), UnorderedElementsAreArray(names("linear", kernels::linear_lanes())));
  const auto rows = bench_kernels(tiny({"quantize", "norm"}, {{5, 0, 70}}));
  ASSERT_TRUE(rows) << rows.error().message();
  std::vector<std::string> expected;
  for (const char* op : {"quantize_per_token", "quantize_static", "layer_norm_quant", "add + layer_norm_quant"}) {
    for (auto& name : names(op, kernels::quantize_lanes())) expected.push_back(std::move(name));
  }
  for (auto& name : names("layer_norm", kernels::layer_norm_lanes())) expected.push_back(std::move(name));
  EXPECT_THAT(kernels_of(*rows), UnorderedElementsAreArray(expected));
  for (const auto* report : {&*linear, &*rows}) {
    for (const KernelTime& time : report->times) expect_measured(time);
  }
}

TEST(KernelBench, RunsNoLaneAboveTheOneThatIsAskedFor) {
  const testing::Variable isa("OASR_ISA", "scalar");
  const auto report = bench_kernels(tiny({"scaled_mm", "linear"}, {{1, 16, 16}}));
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_THAT(kernels_of(*report), UnorderedElementsAreArray({"scaled_mm scalar", "scaled_mm reference", "linear scalar",
                                                              "linear reference"}));
  EXPECT_EQ(report->isa, "scalar");
}

TEST(KernelBench, LeavesOutADefinitionThatTakesLongAndSaysSo) {
  const auto report = bench_kernels(tiny({"scaled_mm"}, {{300, 512, 512}}));
  ASSERT_TRUE(report) << report.error().message();
  for (const KernelTime& time : report->times) {
    const bool definition = time.kernel == "scaled_mm reference";
    EXPECT_EQ(!time.missing.empty(), definition) << time.kernel;
    EXPECT_EQ(time.rounds == 0, definition) << time.kernel;
  }
}

TEST(KernelBench, RefusesWhatItCanNotMeasure) {
  struct Refusal {
    KernelBenchOptions options;
    ErrorCode code;
    const char* where;
    const char* text;
  };
  auto no_rounds = tiny({"linear"}, {{1, 1, 1}});
  no_rounds.repeat = 0;
  auto stopped = tiny({"linear"}, {{1, 1, 1}});
  stopped.cancelled = [] { return true; };
  auto no_device = tiny({"linear"}, {{1, 1, 1}});
  no_device.device = "tpu";
  const Refusal refusals[] = {
      {tiny({"matmul"}, {{1, 1, 1}}), ErrorCode::invalid_argument, "op", "'matmul'"},
      {tiny({"scaled_mm"}, {{5, 0, 7}}), ErrorCode::invalid_argument, "shapes", "scaled_mm of 5x7: a product has three extents"},
      {tiny({"norm"}, {{1, 2, 3}}), ErrorCode::invalid_argument, "shapes", "two extents"},
      {tiny({"scaled_mm"}, {{1, 1, 131'072}}), ErrorCode::invalid_argument, "shapes", "K 131071"},
      {tiny({"norm"}, {{0, 0, 4}}), ErrorCode::invalid_argument, "shapes", "at least 1"},
      {tiny({"linear"}, {{1, 1, 1}, {1 << 24, 1 << 20, 1 << 20}}), ErrorCode::unsupported, "shapes", "MiB of memory"},
      {no_rounds, ErrorCode::invalid_argument, "repeat", "one round"},
      {no_device, ErrorCode::invalid_argument, "device", "tpu"},
      {stopped, ErrorCode::cancelled, "", "stopped"},
  };
  for (const Refusal& refusal : refusals) {
    const auto report = bench_kernels(refusal.options);
    ASSERT_FALSE(report) << refusal.text;
    EXPECT_EQ(report.error().code, refusal.code) << report.error().message();
    EXPECT_EQ(report.error().where, refusal.where) << report.error().message();
    EXPECT_THAT(report.error().what, HasSubstr(refusal.text));
  }
}

TEST(KernelBench, HasShapesForEveryOperation) {
  for (const KernelBenchOp& op : kernel_bench_ops()) {
    EXPECT_FALSE(op.shapes.empty()) << op.name;
    EXPECT_FALSE(op.summary.empty()) << op.name;
    for (const KernelShape& shape : op.shapes) EXPECT_EQ(shape.n > 0, op.product) << op.name;
  }
  for (const kernel_bench::Op& op : kernel_bench::ops()) {
    EXPECT_FALSE(op.gpu_shapes.empty()) << op.info.name;
    for (const KernelShape& shape : op.gpu_shapes) EXPECT_EQ(shape.n > 0, op.info.product) << op.info.name;
  }
}

Case fake(std::string kernel, std::string group, std::function<Status(int)> call, std::span<const std::byte> result) {
  Case c;
  c.time.kernel = std::move(kernel);
  c.group = std::move(group);
  c.call = std::move(call);
  c.result = {result};
  return c;
}

TEST(KernelRounds, RefuseKernelsThatGiveDifferentBits) {
  std::byte y{};
  const std::span<const std::byte> result(&y, 1);
  const auto writes = [&y](int value) {
    return [&y, value](int) -> Status {
      y = std::byte(value);
      return {};
    };
  };
  ThreadPool pool(1);
  Place place;
  place.pool = &pool;
  for (const int other : {7, 8}) {
    Problem problem;
    problem.cases.push_back(fake("one", "g", writes(7), result));
    problem.cases.push_back(fake("alone", "", writes(9), result));
    problem.cases.push_back(fake("two", "g", writes(other), result));
    const Status good = run_rounds(problem, place, 1, {});
    EXPECT_EQ(good.has_value(), other == 7);
    if (!good) {
      EXPECT_EQ(good.error().where, "two");
      EXPECT_THAT(good.error().what, HasSubstr("one"));
    }
  }
}

TEST(KernelRounds, RunKernelsInTurnAndKeepWhatCanNotRun) {
  std::string order;
  std::set<int> sets;
  const auto slow = [&](char name) {
    return [&order, &sets, name](int set) -> Status {
      order += name;
      sets.insert(set);
      const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(2);  // one call a round
      while (std::chrono::steady_clock::now() < end) continue;
      return {};
    };
  };
  Problem problem{.cases = {}, .sets = 3, .memory = nullptr};
  problem.cases.push_back(fake("a", "", slow('a'), {}));
  problem.cases.push_back(fake("none", "", [](int) -> Status { return unexpected(ErrorCode::unsupported, "no"); }, {}));
  problem.cases.push_back(fake("b", "", slow('b'), {}));
  ThreadPool pool(1);
  Place place;
  place.pool = &pool;
  const Status good = run_rounds(problem, place, 4, {});
  ASSERT_TRUE(good) << good.error().message();
  // The first call, one to see how long it takes, then five rounds, of which the first does not count.
  EXPECT_EQ(order, "ab" "ab" "ababababab");
  EXPECT_EQ(sets, (std::set<int>{0, 1, 2}));
  EXPECT_EQ(problem.cases[1].time.missing, "no");
  EXPECT_EQ(problem.cases[1].time.rounds, 0);
  EXPECT_EQ(problem.cases[0].time.rounds, 4);
  EXPECT_GE(problem.cases[0].time.min_us, 2000);
}

TEST(Roof, IsTheLargerOfOperationsAndBytes) {
  const Ceilings ceilings{.operands = {{"int8", 1000}, {"none", 0}}, .copy_gbs = 10};
  const Roof computing = roof_of(ceilings, "int8", 4e12, 1e9), moving = roof_of(ceilings, "int8", 1e10, 1e9);
  EXPECT_DOUBLE_EQ(computing.seconds, 4);
  EXPECT_FALSE(computing.memory);
  EXPECT_DOUBLE_EQ(moving.seconds, 0.1);
  EXPECT_TRUE(moving.memory);
  EXPECT_DOUBLE_EQ(roof_of(ceilings, "none", 1e12, 0).seconds, 0);
  EXPECT_DOUBLE_EQ(roof_of(ceilings, "unknown", 1e12, 1e9).seconds, 0.1);
}

}  // namespace
}  // namespace oasr
