#include <gtest/gtest.h>

#include <limits>
#include <optional>

#include "kernels/lane_report.h"
#include "kernels/linear/op.h"
#include "kernels/testing.h"

namespace oasr::kernels {
namespace {

[[maybe_unused]] const auto* const kLanes = report_lanes("linear", linear_lanes);

constexpr DType kStorages[] = {DType::f32, DType::f16, DType::bf16};

// A problem with its memory; rows have gaps, so that a write or read out of place is seen.
struct Case {
  Case(std::int64_t m, std::int64_t n, std::int64_t k, DType storage, unsigned seed, bool epilogue)
      : m(m), n(n), k(k), x(random_floats(m * (k + 3), seed)),
        weight(pack_rows(random_floats(n * k, seed + 1), n, k, storage)),
        bias(random_floats(n, seed + 2)), residual(random_floats(m * (n + 1), seed + 3)),
        y(static_cast<std::size_t>(m * (n + 5)), 77.0f), epilogue(epilogue),
        activation(epilogue ? some_activation(seed / 2) : Activation::none) {}

  LinearArgs args() {
    LinearArgs a{.x = x.data(), .ldx = k + 3, .m = m, .weight = &weight, .y = y.data(), .ldy = n + 5};
    a.activation = activation;
    if (epilogue) {
      a.bias = bias.data();
      a.residual = residual.data();
      a.alpha = m % 2 == 0 ? 1.0f : 0.3f;
      a.ldr = n + 1;
    }
    return a;
  }
  std::vector<float> reference() {
    std::vector<float> expected(y.size(), 77.0f);
    LinearArgs a = args();
    a.y = expected.data();
    linear_reference(a);
    return expected;
  }
  std::vector<float> run(const LinearLane& lane) {
    std::fill(y.begin(), y.end(), 77.0f);
    lane.run(args(), 0, m, 0, (n + 31) / 32);
    return y;
  }

  std::int64_t m, n, k;
  std::vector<float> x;
  PackedWeight weight;
  std::vector<float> bias, residual, y;
  bool epilogue;
  Activation activation;
};

TEST(LinearLanes, EqualTheReferenceOnRaggedShapes) {
  unsigned seed = 1;
  for (const std::int64_t m : {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 15, 16, 17, 25, 31, 48, 67, 121, 130}) {
    for (const auto& [n, k] : {std::pair{1, 1}, {5, 67}, {31, 2}, {32, 33}, {33, 64}, {67, 193}, {160, 7}}) {
      for (const DType storage : kStorages) {
        ++seed;
        Case test(m, n, k, storage, seed, seed % 2 == 0);
        const auto expected = test.reference();
        for (const LinearLane& lane : runnable(linear_lanes())) {
          EXPECT_EQ(first_difference(test.run(lane), expected), -1)
              << lane.name << " m " << m << " n " << n << " k " << k << " " << dtype_name(storage);
        }
      }
    }
  }
}

TEST(LinearLanes, EqualTheReferenceWhereSumsStayInRegisters) {
  for (const std::int64_t m : {1, 5, 12, 13, 50}) {
    for (const std::int64_t k : {1, 9, 32, 33}) {
      for (const auto activation : {Activation::none, Activation::relu, Activation::swish}) {
        for (const bool with_bias : {true, false}) {
          for (const DType storage : kStorages) {
            Case test(m, 69, k, storage, static_cast<unsigned>(m * k), true);
            LinearArgs args = test.args();
            args.residual = nullptr;
            args.activation = activation;
            if (!with_bias) args.bias = nullptr;
            linear_reference(args);
            const auto expected = test.y;
            for (const LinearLane& lane : runnable(linear_lanes())) {
              std::fill(test.y.begin(), test.y.end(), 77.0f);
              lane.run(args, 0, m, 0, 2);
              lane.run(args, 0, m, 2, 3);
              EXPECT_EQ(first_difference(test.y, expected), -1) << lane.name << " m " << m << " k " << k;
            }
          }
        }
      }
    }
  }
}

TEST(LinearLanes, EqualTheReferenceOnTheModelsShapes) {
  for (const auto& [m, n, k] : {std::tuple{50, 512, 512}, {3, 2048, 512}, {37, 384, 1536}, {5, 384, 384},
                                {9, 512, 2048}, {1, 51865, 384}}) {
    for (const DType storage : kStorages) {
      if (n > 10'000 && storage == DType::bf16) continue;  // the packing takes most of the time
      Case test(m, n, k, storage, static_cast<unsigned>(n + k), true);
      const auto expected = test.reference();
      for (const LinearLane& lane : runnable(linear_lanes())) {
        EXPECT_EQ(first_difference(test.run(lane), expected), -1)
            << lane.name << " m " << m << " n " << n << " k " << k << " " << dtype_name(storage);
      }
    }
  }
}

TEST(LinearLanes, EqualTheReferenceForEverySplit) {
  Case test(19, 200, 70, DType::f16, 5, true);
  const auto expected = test.reference();
  for (const LinearLane& lane : runnable(linear_lanes())) {
    for (std::int64_t m = 0; m <= 19; ++m) {
      for (std::int64_t p = 0; p <= 7; ++p) {
        std::fill(test.y.begin(), test.y.end(), 77.0f);
        lane.run(test.args(), 0, m, 0, p);
        lane.run(test.args(), 0, m, p, 7);
        lane.run(test.args(), m, 19, p, 7);
        lane.run(test.args(), m, 19, 0, p);
        ASSERT_EQ(first_difference(test.y, expected), -1) << lane.name << " rows " << m << " panels " << p;
      }
    }
  }
}

TEST(Linear, EqualsTheReferenceForAnyNumberOfThreads) {
  for (const int threads : {1, 2, 3, 16}) {
    ThreadPool pool(threads);
    for (const std::int64_t m : {1, 5, 40, 120, 121, 300}) {
      Case test(m, 333, 130, DType::bf16, static_cast<unsigned>(m), true);
      const auto expected = test.reference();
      for (const LinearLane& lane : runnable(linear_lanes())) {
        ExecContext context{&pool, lane.isa};
        std::fill(test.y.begin(), test.y.end(), 77.0f);
        linear(context, test.args());
        EXPECT_EQ(first_difference(test.y, expected), -1) << lane.name << " threads " << threads << " m " << m;
      }
    }
  }
}

TEST(Linear, RunsTheLaneThatIsAskedFor) {
  for (const LinearLane& lane : linear_lanes()) EXPECT_EQ(linear_lane(lane.isa).name, lane.name);
}

TEST(LinearLanes, PassNanInfinityHugeAndTinyValuesLikeTheReference) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float odd[] = {kInf, -kInf, std::nanf(""), 3e38f, -3e38f, 1e-45f, -1e-40f, 0.0f, -0.0f, 1e-30f};
  for (const std::int64_t m : {1, 4, 60}) {
    for (const bool in_weight : {false, true}) {
      Case test(m, 40, 30, DType::f32, 11, true);
      auto rows = random_floats(40 * 30, 3);
      for (std::size_t i = 0; i < 10; ++i) {
        if (in_weight) {
          rows[i * 97 % rows.size()] = odd[i];
        } else {
          test.x[i * 97 % test.x.size()] = odd[i];
        }
      }
      test.weight = pack_rows(rows, 40, 30, DType::f32);
      const auto expected = test.reference();
      for (const LinearLane& lane : runnable(linear_lanes())) {
        EXPECT_EQ(first_difference(test.run(lane), expected), -1) << lane.name << " m " << m;
      }
    }
  }
}

TEST(LinearLanes, KeepARowsBitsWhateverItsNeighbours) {
  Case test(140, 64, 512, DType::f16, 21, true);
  for (const LinearLane& lane : runnable(linear_lanes())) {
    const auto together = test.run(lane);
    for (std::int64_t m = 0; m < 140; ++m) {
      std::fill(test.y.begin(), test.y.end(), 77.0f);
      lane.run(test.args(), m, m + 1, 0, 2);
      const auto row = [&](const std::vector<float>& y) {
        return std::span(y).subspan(static_cast<std::size_t>(m * 69), 64);
      };
      ASSERT_EQ(first_difference(row(test.y), row(together)), -1) << lane.name << " row " << m;
    }
  }
}

TEST(Linear, AddsTheResidualInPlace) {
  ThreadPool pool(2);
  ExecContext context{&pool, detected_isa()};
  Case test(50, 96, 64, DType::f32, 31, true);
  LinearArgs args = test.args();
  args.residual = args.y;
  args.ldr = args.ldy;
  test.residual = random_floats(static_cast<std::int64_t>(test.y.size()), 5);
  test.y = test.residual;
  std::vector<float> expected = test.residual;
  linear(context, args);
  LinearArgs definition = args;
  definition.y = expected.data();
  definition.residual = expected.data();
  linear_reference(definition);
  EXPECT_EQ(first_difference(test.y, expected), -1);
}

TEST(PackedWeight, RoundsToItsStorageAndReturnsItsRows) {
  const auto rows = random_floats(37 * 19, 7);
  for (const DType storage : kStorages) {
    const PackedWeight weight = pack_rows(rows, 37, 19, storage);
    EXPECT_EQ(weight.bytes(), 2 * 32 * 19 * dtype_size(storage));
    std::vector<float> row(19);
    for (std::int64_t n = 0; n < 37; ++n) {
      weight.unpack_row(n, row);
      for (std::size_t i = 0; i < 19; ++i) {
        float expected = rows[static_cast<std::size_t>(n) * 19 + i];
        if (storage == DType::f16) expected = to_float(to_half(expected));
        if (storage == DType::bf16) expected = to_float(to_bfloat16(expected));
        EXPECT_EQ(row[i], expected);
      }
    }
  }
}

}  // namespace
}  // namespace oasr::kernels
