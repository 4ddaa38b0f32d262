#include <gtest/gtest.h>

#include <limits>

#include "kernels/lane_report.h"
#include "kernels/quantize/norm.h"
#include "kernels/testing.h"

namespace oasr::kernels {
namespace {

[[maybe_unused]] const auto* const kQuantizeLanes = report_lanes("quantize", quantize_lanes);
[[maybe_unused]] const auto* const kLayerNormQuantLanes = report_lanes("layer_norm_quant", layer_norm_quant_lanes);

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNan = std::nanf("");

std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }

// int8 rows and their scales; rows have gaps, so that a write out of place is seen.
struct Quantized {
  Quantized(std::int64_t m, std::int64_t k) : ldq(k + 3), q(size(m * ldq), 99), scale(size(m), 55.0f) {}
  std::int64_t ldq;
  std::vector<std::int8_t> q;
  std::vector<float> scale;
  std::int64_t not_finite = -1;
};

void expect_equal(const Quantized& a, const Quantized& b, const std::string& what) {
  EXPECT_EQ(a.q, b.q) << what;
  EXPECT_EQ(first_difference(a.scale, b.scale), -1) << what;
  EXPECT_EQ(a.not_finite, b.not_finite) << what;
}

struct Case {
  Case(std::int64_t m, std::int64_t k, unsigned seed)
      : m(m), k(k), x(random_floats(m * (k + 2), seed, 3.0f)), smooth_inv(random_floats(k, seed + 1)) {}
  QuantizePerTokenArgs per_token(Quantized& to, bool smooth) const {
    return {.x = x.data(), .ldx = k + 2, .m = m, .k = k, .smooth_inv = smooth ? smooth_inv.data() : nullptr,
            .q = to.q.data(), .ldq = to.ldq, .scale = to.scale.data()};
  }
  QuantizeStaticArgs fixed(Quantized& to) const {
    return {.x = x.data(), .ldx = k + 2, .m = m, .k = k, .multiplier = smooth_inv.data(),
            .q = to.q.data(), .ldq = to.ldq};
  }
  // Every lane against the reference, the rows cut in two.
  void expect_lanes_equal(const std::string& what) const {
    for (const bool smooth : {false, true}) {
      Quantized expected(m, k);
      expected.not_finite = quantize_per_token_reference(per_token(expected, smooth)).row;
      for (const QuantizeLane& lane : runnable(quantize_lanes())) {
        Quantized got(m, k);
        NotFinite found = lane.per_token(per_token(got, smooth), 0, m / 2);
        found.merge(lane.per_token(per_token(got, smooth), m / 2, m));
        got.not_finite = found.row;
        expect_equal(got, expected, what + " per token " + std::string(lane.name));
      }
    }
    Quantized expected(m, k);
    expected.not_finite = quantize_static_reference(fixed(expected)).row;
    for (const QuantizeLane& lane : runnable(quantize_lanes())) {
      Quantized got(m, k);
      NotFinite found = lane.fixed(fixed(got), 0, m / 2);
      found.merge(lane.fixed(fixed(got), m / 2, m));
      got.not_finite = found.row;
      expect_equal(got, expected, what + " static " + std::string(lane.name));
    }
  }
  std::int64_t m, k;
  std::vector<float> x, smooth_inv;
};

TEST(QuantizeLanes, EqualTheReferenceForEveryWidth) {
  for (std::int64_t k = 1; k <= 67; ++k) Case(5, k, static_cast<unsigned>(k)).expect_lanes_equal("k " + std::to_string(k));
  for (const std::int64_t k : {384, 512, 1536, 1999, 2048}) {
    Case(3, k, static_cast<unsigned>(k)).expect_lanes_equal("k " + std::to_string(k));
  }
}

TEST(QuantizeLanes, TreatOddValuesLikeTheReference) {
  for (const float odd : {kInf, -kInf, kNan, 3.4e38f, -3.4e38f, 1e-45f, -1e-40f, 1e30f, -0.0f, 1e-8f}) {
    for (const std::int64_t k : {1, 7, 33, 64}) {
      for (const std::int64_t place : {std::int64_t{0}, k - 1}) {
        Case test(4, k, 9);
        test.x[size(2 * (k + 2) + place)] = odd;
        test.expect_lanes_equal(std::to_string(odd) + " in x");
        Case row(4, k, 9);
        for (std::int64_t i = 0; i < k; ++i) row.x[size(k + 2 + i)] = odd;
        row.expect_lanes_equal(std::to_string(odd) + " all over");
        Case smoother(4, k, 9);
        smoother.smooth_inv[size(place)] = odd;
        if (std::isfinite(odd)) smoother.expect_lanes_equal(std::to_string(odd) + " in the smoother");
      }
    }
  }
}

TEST(QuantizePerToken, RoundsHalfToEven) {
  // amax 127 gives a factor of 1.
  const std::vector<float> x = {127.0f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, -127.0f, 0.49999997f, 126.5f};
  for (const QuantizeLane& lane : runnable(quantize_lanes())) {
    Quantized got(1, 10);
    EXPECT_FALSE(lane.per_token({.x = x.data(), .m = 1, .k = 10, .q = got.q.data(), .scale = got.scale.data()}, 0, 1));
    EXPECT_EQ(std::vector<std::int8_t>(got.q.begin(), got.q.begin() + 10),
              (std::vector<std::int8_t>{127, 0, 2, 2, 0, -2, -2, -127, 0, 126})) << lane.name;
    EXPECT_EQ(got.scale[0], 1.0f);
  }
}

TEST(QuantizePerToken, GivesAZeroRowTheLeastScale) {
  const std::vector<float> x(20, 0.0f);
  for (const QuantizeLane& lane : runnable(quantize_lanes())) {
    Quantized got(1, 20);
    EXPECT_FALSE(lane.per_token({.x = x.data(), .m = 1, .k = 20, .q = got.q.data(), .scale = got.scale.data()}, 0, 1));
    EXPECT_EQ(std::count(got.q.begin(), got.q.begin() + 20, 0), 20);
    EXPECT_EQ(got.scale[0], 1e-8f / 127.0f);
  }
}

TEST(QuantizePerToken, MarksARowThatIsNotFiniteAndKeepsTheOthers) {
  for (const float odd : {kInf, -kInf, kNan}) {
    Case test(5, 40, 3);
    Quantized clean(5, 40);
    EXPECT_FALSE(quantize_per_token_reference(test.per_token(clean, false)));
    test.x[2 * 42 + 39] = odd;
    test.x[4 * 42] = odd;
    for (const QuantizeLane& lane : runnable(quantize_lanes())) {
      Quantized got(5, 40);
      EXPECT_EQ(lane.per_token(test.per_token(got, false), 0, 5).row, 2) << lane.name;
      for (const std::int64_t m : {0, 1, 3}) {
        EXPECT_EQ(got.scale[size(m)], clean.scale[size(m)]);
        EXPECT_TRUE(std::equal(got.q.begin() + m * 43, got.q.begin() + m * 43 + 40, clean.q.begin() + m * 43));
      }
      EXPECT_TRUE(std::isnan(got.scale[2]) && std::isnan(got.scale[4]));
      EXPECT_EQ(std::count(got.q.begin() + 2 * 43, got.q.begin() + 2 * 43 + 40, 0), 40);
    }
  }
}

TEST(QuantizePerToken, ReportsARowThatTheSmootherMakesInfinite) {
  Case test(3, 16, 1);
  test.x[18 + 5] = 1e30f;
  test.smooth_inv[5] = 1e30f;
  for (const QuantizeLane& lane : runnable(quantize_lanes())) {
    Quantized got(3, 16);
    EXPECT_EQ(lane.per_token(test.per_token(got, true), 0, 3).row, 1) << lane.name;
  }
}

TEST(QuantizeStatic, SaturatesLargeValuesAndZeroesWhatIsNotFinite) {
  const std::vector<float> x = {1e30f, -1e30f, 3e38f, kInf, kNan, -kInf, 127.4f, 1.0f};
  const std::vector<float> multiplier = {1.0f, 1.0f, 1e5f, 1.0f, 1.0f, 1.0f, 1.0f, 3.0f};
  for (const QuantizeLane& lane : runnable(quantize_lanes())) {
    std::vector<std::int8_t> q(8, 99);
    EXPECT_EQ(lane.fixed({.x = x.data(), .m = 1, .k = 8, .multiplier = multiplier.data(), .q = q.data()}, 0, 1).row, 0);
    EXPECT_EQ(q, (std::vector<std::int8_t>{127, -127, 127, 0, 0, 0, 127, 3})) << lane.name;
  }
}

TEST(StaticMultiplier, DividesOnceAndTakesTheSmoother) {
  EXPECT_EQ(static_multiplier({}, 3.0f, 2), (std::vector<float>{1.0f / 3.0f, 1.0f / 3.0f}));
  const std::vector<float> smooth_inv = {7.0f, 0.1f};
  EXPECT_EQ(static_multiplier(smooth_inv, 3.0f, 2),
            (std::vector<float>{7.0f * (1.0f / 3.0f), 0.1f * (1.0f / 3.0f)}));
}

TEST(Quantize, EqualsTheReferenceForAnyNumberOfThreads) {
  for (const int threads : {1, 2, 3, 16}) {
    ThreadPool pool(threads);
    Case test(999, 160, 5);
    test.x[700 * 162 + 3] = kNan;
    test.x[998 * 162 + 3] = kInf;
    Quantized expected(999, 160), fixed(999, 160);
    expected.not_finite = quantize_per_token_reference(test.per_token(expected, true)).row;
    fixed.not_finite = quantize_static_reference(test.fixed(fixed)).row;
    EXPECT_EQ(fixed.not_finite, 700);
    for (const QuantizeLane& lane : runnable(quantize_lanes())) {
      EXPECT_EQ(quantize_lane(lane.isa).name, lane.name);
      ExecContext context{&pool, lane.isa};
      Quantized got(999, 160), got_fixed(999, 160);
      got.not_finite = quantize_per_token(context, test.per_token(got, true)).row;
      expect_equal(got, expected, "threads " + std::to_string(threads));
      got_fixed.not_finite = quantize_static(context, test.fixed(got_fixed)).row;
      expect_equal(got_fixed, fixed, "threads " + std::to_string(threads));
    }
  }
}

// layer_norm_quant with its memory.
struct NormCase {
  NormCase(std::int64_t m, std::int64_t d, bool add, unsigned seed)
      : m(m), d(d), add(add), x(random_floats(m * (d + 2), seed)), addend(random_floats(m * (d + 1), seed + 1)),
        gamma(random_floats(d, seed + 2)), beta(random_floats(d, seed + 3)) {}
  LayerNormQuantArgs args(Quantized& to, std::vector<float>& sum) const {
    sum.assign(size(m * (d + 4)), 44.0f);
    LayerNormQuantArgs a{.x = x.data(), .ldx = d + 2, .m = m, .d = d, .gamma = gamma.data(), .beta = beta.data(),
                         .q = to.q.data(), .ldq = to.ldq, .scale = to.scale.data()};
    if (add) {
      a.addend = addend.data();
      a.ld_addend = d + 1;
      a.addend_scale = 0.7f;
      a.sum = sum.data();
      a.ld_sum = d + 4;
    }
    return a;
  }
  std::int64_t m, d;
  bool add;
  std::vector<float> x, addend, gamma, beta;
};

TEST(LayerNormQuant, EqualsTheReferenceOnEveryLaneAndThreadCount) {
  std::vector<std::int64_t> widths = {384, 512, 1999};
  for (std::int64_t d = 1; d <= 67; ++d) widths.push_back(d);
  for (const std::int64_t d : widths) {
    for (const bool add : {false, true}) {
      NormCase test(d == 512 ? 300 : 5, d, add, static_cast<unsigned>(d));
      test.x[size(3 * (d + 2))] = d % 2 == 0 ? kNan : 1e-42f;
      Quantized expected(test.m, d);
      std::vector<float> sum, expected_sum;
      expected.not_finite = layer_norm_quant_reference(test.args(expected, expected_sum)).row;
      for (const LayerNormQuantLane& lane : runnable(layer_norm_quant_lanes())) {
        for (const int threads : {1, 3}) {
          ThreadPool pool(threads);
          ExecContext context{&pool, lane.isa};
          EXPECT_EQ(layer_norm_quant_lane(lane.isa).name, lane.name);
          Quantized got(test.m, d);
          got.not_finite = layer_norm_quant(context, test.args(got, sum)).row;
          expect_equal(got, expected, std::string(lane.name) + " d " + std::to_string(d));
          EXPECT_EQ(first_difference(sum, expected_sum), -1);
        }
      }
    }
  }
}

TEST(LayerNormQuant, EqualsTheUnfusedPairOfOps) {
  ThreadPool pool(2);
  for (const LayerNormQuantLane& lane : runnable(layer_norm_quant_lanes())) {
    ExecContext context{&pool, lane.isa};
    NormCase test(70, 512, false, 4);
    Quantized fused(70, 512), pair(70, 512);
    std::vector<float> sum, normal(70 * 512);
    fused.not_finite = layer_norm_quant(context, test.args(fused, sum)).row;
    layer_norm(context, {.x = test.x.data(), .ldx = 514, .m = 70, .d = 512, .gamma = test.gamma.data(),
                         .beta = test.beta.data(), .y = normal.data(), .ldy = 512});
    pair.not_finite = quantize_per_token(context, {.x = normal.data(), .ldx = 512, .m = 70, .k = 512, .q = pair.q.data(),
                                                   .ldq = pair.ldq, .scale = pair.scale.data()}).row;
    expect_equal(fused, pair, std::string(lane.name));
  }
}

TEST(LaneReport, NamesWhatRunsAndWhatDoesNot) {
  struct Row {
    std::string_view name;
    Isa isa;
  };
  constexpr Row kRows[] = {{"scalar", Isa::scalar}, {"avx2", Isa::avx2}, {"avx512", Isa::avx512}, {"amx", Isa::amx}};
  const auto below = [](Isa least) { return [least](Isa isa) { return isa < least; }; };
  EXPECT_EQ(lanes_text("op", std::span<const Row>(kRows), below(Isa::avx512)),
            "lanes of op: scalar, avx2; skipped, since this processor or system can not run them: avx512, amx");
  EXPECT_EQ(lanes_text("op", std::span<const Row>(kRows).first(2), below(Isa::avx512)), "lanes of op: scalar, avx2");
}

}  // namespace
}  // namespace oasr::kernels
