#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>

#include "kernels/scaled_mm/backend.h"
#include "kernels/scaled_mm/op.h"
#include "kernels/testing.h"

namespace oasr::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }

std::vector<std::int8_t> random_int8(std::int64_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_int_distribution<int> any(-127, 127);
  std::vector<std::int8_t> values(size(count));
  for (std::int8_t& value : values) value = static_cast<std::int8_t>(any(engine));
  return values;
}

std::vector<float> random_scales(std::int64_t count, unsigned seed) {
  auto scales = random_floats(count, seed, 0.01f);
  for (float& scale : scales) scale = std::fabs(scale) + 1e-5f;
  return scales;
}

// A problem with its memory; rows have gaps, so that a write or read out of place is seen.
struct Case {
  Case(std::int64_t m, std::int64_t n, std::int64_t k, unsigned seed)
      : m(m), n(n), k(k), a(random_int8(m * (k + 3), seed)), a_scale(random_scales(m, seed + 1)),
        weight(PackedInt8Weight::pack(n, k, random_int8(n * k, seed + 2), random_scales(n, seed + 3))),
        bias(random_floats(n, seed + 4)), residual(random_floats(m * (n + 1), seed + 5)),
        multiplier(random_floats(n, seed + 6, 20.0f)), with_bias(seed % 3 != 0), with_gelu(seed % 2 == 0),
        with_residual(seed % 4 < 2), per_token(seed % 5 != 0) {}

  ScaledMMArgs args() const {
    return {.a = a.data(), .lda = k + 3,
            .a_scale = per_token ? ActivationScale::per_token(a_scale.data()) : ActivationScale::per_tensor(a_scale.data()),
            .m = m, .weight = &weight, .bias = with_bias ? bias.data() : nullptr,
            .activation = with_gelu ? Activation::gelu : Activation::none};
  }
  FloatOutput to(std::vector<float>& y) const {
    y.assign(size(m * (n + 5)), 77.0f);
    return {.residual = with_residual ? residual.data() : nullptr, .ldr = n + 1, .y = y.data(), .ldy = n + 5};
  }
  Int8Output to(std::vector<std::int8_t>& q) const {
    q.assign(size(m * (n + 5)), 99);
    return {.multiplier = multiplier.data(), .q = q.data(), .ldq = n + 5};
  }
  std::vector<std::byte> scratch() const { return std::vector<std::byte>(scaled_mm_scratch(m, k) + 64); }

  // Every lane, both outputs, panels cut in two.
  void expect_lanes_equal() const {
    std::vector<float> expected, y;
    std::vector<std::int8_t> expected_q, q;
    scaled_mm_reference(args(), to(expected));
    const NotFinite expected_found = scaled_mm_quant_reference(args(), to(expected_q));
    auto memory = scratch();
    std::byte* aligned = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64;
    const std::int64_t panels = weight.panels(), cut = panels / 3;
    for (const ScaledMMLane& lane : runnable(scaled_mm_lanes())) {
      const std::string what = std::string(lane.name) + " m " + std::to_string(m) + " n " + std::to_string(n) +
                               " k " + std::to_string(k);
      const FloatOutput out = to(y);
      lane.run(args(), out, 0, cut, aligned);
      lane.run(args(), out, cut, panels, aligned);
      ASSERT_EQ(first_difference(y, expected), -1) << what;
      const Int8Output out_q = to(q);
      NotFinite found = lane.run_quant(args(), out_q, 0, cut, aligned);
      found.merge(lane.run_quant(args(), out_q, cut, panels, aligned));
      ASSERT_EQ(q, expected_q) << what;
      ASSERT_EQ(found.row, expected_found.row) << what;
    }
  }

  std::int64_t m, n, k;
  std::vector<std::int8_t> a;
  std::vector<float> a_scale;
  PackedInt8Weight weight;
  std::vector<float> bias, residual, multiplier;
  bool with_bias, with_gelu, with_residual, per_token;
};

TEST(ScaledMMLanes, EqualTheReferenceForEveryK) {
  for (std::int64_t k = 1; k <= 67; ++k) {
    for (const auto& [m, n] : {std::pair{1, 67}, {3, 16}, {7, 33}, {17, 5}, {33, 80}}) {
      Case(m, n, k, static_cast<unsigned>(7 * k + m)).expect_lanes_equal();
    }
  }
}

TEST(ScaledMMLanes, EqualTheReferenceForEveryN) {
  for (std::int64_t n = 1; n <= 67; ++n) {
    for (const auto& [m, k] : {std::pair{1, 130}, {2, 67}, {6, 5}, {20, 64}}) {
      Case(m, n, k, static_cast<unsigned>(7 * n + m)).expect_lanes_equal();
    }
  }
}

TEST(ScaledMMLanes, EqualTheReferenceForEveryM) {
  for (std::int64_t m = 1; m <= 67; ++m) {
    for (const auto& [n, k] : {std::pair{67, 67}, {16, 128}, {81, 9}}) {
      Case(m, n, k, static_cast<unsigned>(7 * m + n)).expect_lanes_equal();
    }
  }
}

TEST(ScaledMMLanes, EqualTheReferenceOnTheModelsShapes) {
  for (const auto& [m, n, k] : {std::tuple{50, 512, 512}, {96, 384, 384}, {3, 2048, 512}, {37, 384, 1536},
                                {9, 512, 2048}, {16, 512, 240}, {1, 51865, 384}, {1, 512, 2048}}) {
    Case(m, n, k, static_cast<unsigned>(n + k + m)).expect_lanes_equal();
  }
}

TEST(ScaledMMLanes, HoldTheGreatestSums) {
  // 127 · 127 · K and its negative, where a 16-bit saturation or a lost carry would show.
  for (const int sign_a : {1, -1}) {
    for (const int sign_w : {1, -1}) {
      for (const std::int64_t m : {1, 5, 33}) {
        Case test(m, 40, 2048, 1);
        std::fill(test.a.begin(), test.a.end(), static_cast<std::int8_t>(127 * sign_a));
        const std::vector<std::int8_t> rows(size(40 * 2048), static_cast<std::int8_t>(127 * sign_w));
        test.weight = PackedInt8Weight::pack(40, 2048, rows, random_scales(40, 2));
        test.expect_lanes_equal();
      }
    }
  }
  Case lowest(20, 20, 300, 1);  // a checkpoint of others may hold -128
  std::fill(lowest.a.begin(), lowest.a.end(), std::int8_t{-128});
  lowest.weight = PackedInt8Weight::pack(20, 300, std::vector<std::int8_t>(6000, -128), random_scales(20, 2));
  lowest.expect_lanes_equal();
}

TEST(ScaledMMLanes, HoldTheGreatestK) {
  const std::int64_t k = PackedInt8Weight::kGreatestK;
  for (const std::int8_t value : {std::int8_t{127}, std::int8_t{-128}}) {
    Case test(2, 3, k, 1);
    std::fill(test.a.begin(), test.a.end(), std::int8_t{-128});
    test.weight = PackedInt8Weight::pack(3, k, std::vector<std::int8_t>(size(3 * k), value), random_scales(3, 2));
    test.expect_lanes_equal();
  }
}

TEST(ScaledMMLanes, TreatOddScalesBiasesAndResidualsLikeTheReference) {
  for (const float odd : {kInf, -kInf, std::nanf(""), 3e38f, 1e-45f, -1e-40f, 1e30f, 1e-30f, 0.0f, -0.0f}) {
    for (const std::int64_t m : {1, 9, 20}) {
      for (const int where : {0, 1, 2, 3, 4}) {
        Case test(m, 40, 30, static_cast<unsigned>(4 * m + where));
        test.with_residual = test.with_bias = true;
        auto scales = random_scales(40, 8);
        if (where == 0) test.a_scale[size(m - 1)] = odd;
        if (where == 1) scales[39] = odd;
        if (where == 2) test.bias[17] = odd;
        if (where == 3) test.residual[5] = odd;
        if (where == 4 && std::isfinite(odd)) test.multiplier[20] = odd;
        test.weight = PackedInt8Weight::pack(40, 30, random_int8(1200, 3), scales);
        test.expect_lanes_equal();
      }
    }
  }
}

TEST(ScaledMMLanes, KeepARowsBitsWhateverItsNeighbours) {
  Case test(90, 100, 192, 8);
  for (const ScaledMMLane& lane : runnable(scaled_mm_lanes())) {
    ThreadPool pool(1);
    ExecContext context{&pool, lane.isa};
    std::vector<float> together, alone;
    scaled_mm(context, test.args(), test.to(together));
    FloatOutput out = test.to(alone);
    for (std::int64_t m = 0; m < 90; ++m) {
      ScaledMMArgs row = test.args();
      row.a += m * row.lda;
      row.a_scale = row.a_scale.from_row(m);
      row.m = 1;
      FloatOutput to = out;
      to.y += m * out.ldy;
      to.residual = out.residual == nullptr ? nullptr : out.residual + m * out.ldr;
      scaled_mm(context, row, to);
    }
    EXPECT_EQ(first_difference(alone, together), -1) << lane.name;
  }
}

TEST(ScaledMM, EqualsTheReferenceForAnyNumberOfThreads) {
  for (const int threads : {1, 2, 3, 16}) {
    ThreadPool pool(threads);
    for (const auto& [m, k] : {std::pair{1, 130}, {5, 64}, {40, 100}, {97, 130}, {300, 70}, {100, 1100}}) {
      Case test(m, 333, k, static_cast<unsigned>(m));
      std::vector<float> expected, y;
      std::vector<std::int8_t> expected_q, q;
      scaled_mm_reference(test.args(), test.to(expected));
      EXPECT_FALSE(scaled_mm_quant_reference(test.args(), test.to(expected_q)));
      for (const ScaledMMLane& lane : runnable(scaled_mm_lanes())) {
        ExecContext context{&pool, lane.isa};
        scaled_mm(context, test.args(), test.to(y));
        EXPECT_EQ(first_difference(y, expected), -1) << lane.name << " threads " << threads << " m " << m;
        EXPECT_FALSE(scaled_mm_quant(context, test.args(), test.to(q)));
        EXPECT_EQ(q, expected_q) << lane.name << " threads " << threads << " m " << m;
      }
    }
  }
}

TEST(ScaledMM, RunsTheLaneThatIsAskedFor) {
  for (const ScaledMMLane& lane : scaled_mm_lanes()) EXPECT_EQ(scaled_mm_lane(lane.isa).name, lane.name);
  EXPECT_EQ(scaled_mm_lane(Isa::avx512).name, "avx2");  // AVX-512 without VNNI
}

TEST(ScaledMM, AddsTheResidualInPlace) {
  Case test(50, 96, 64, 4);
  for (const ScaledMMLane& lane : runnable(scaled_mm_lanes())) {
    ThreadPool pool(2);
    ExecContext context{&pool, lane.isa};
    std::vector<float> expected = test.residual, y = test.residual;
    scaled_mm_reference(test.args(), {.residual = expected.data(), .ldr = 97, .y = expected.data(), .ldy = 97});
    scaled_mm(context, test.args(), {.residual = y.data(), .ldr = 97, .y = y.data(), .ldy = 97});
    EXPECT_EQ(first_difference(y, expected), -1) << lane.name;
  }
}

TEST(ScaledMMQuant, EqualsTheUnfusedPairAndReportsTheFirstRow) {
  ThreadPool pool(2);
  for (const ScaledMMLane& lane : runnable(scaled_mm_lanes())) {
    ExecContext context{&pool, lane.isa};
    Case test(200, 72, 48, 7);
    test.per_token = true;
    test.a_scale[150] = std::nanf("");
    test.a_scale[170] = kInf;
    std::vector<float> y;
    std::vector<std::int8_t> fused, pair;
    test.with_residual = false;
    scaled_mm(context, test.args(), test.to(y));
    const Int8Output to = test.to(pair);
    const NotFinite expected = quantize_static(context, {.x = y.data(), .ldx = 77, .m = 200, .k = 72, .multiplier = to.multiplier,
                                                         .q = to.q, .ldq = to.ldq});
    EXPECT_EQ(scaled_mm_quant(context, test.args(), test.to(fused)).row, expected.row) << lane.name;
    EXPECT_EQ(expected.row, 150);
    EXPECT_EQ(fused, pair) << lane.name;
  }
}

TEST(ScaledMMDynamic, EqualsTheUnfusedPairAndReportsTheFirstRow) {
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    for (const std::int64_t m : {1, 4, 130}) {
      for (const bool smooth : {false, true}) {
        Case test(m, 200, 130, 8);
        auto x = random_floats(m * 140, 3, 2.0f);
        const auto smooth_inv = random_floats(130, 4);
        if (m > 100) x[111 * 140 + 7] = kInf;
        for (const ScaledMMLane& lane : runnable(scaled_mm_lanes())) {
          ExecContext context{&pool, lane.isa};
          std::vector<float> fused, pair;
          const NotFinite found = scaled_mm_dynamic(
              context, {.x = x.data(), .ldx = 140, .m = m, .smooth_inv = smooth ? smooth_inv.data() : nullptr,
                        .weight = &test.weight, .bias = test.bias.data(), .activation = Activation::gelu},
              test.to(fused));
          std::vector<std::int8_t> q(size(m * 130));
          std::vector<float> scale(size(m));
          const NotFinite expected = quantize_per_token(
              context, {.x = x.data(), .ldx = 140, .m = m, .k = 130, .smooth_inv = smooth ? smooth_inv.data() : nullptr,
                        .q = q.data(), .ldq = 130, .scale = scale.data()});
          scaled_mm(context, {.a = q.data(), .lda = 130, .a_scale = ActivationScale::per_token(scale.data()), .m = m,
                              .weight = &test.weight, .bias = test.bias.data(), .activation = Activation::gelu},
                    test.to(pair));
          EXPECT_EQ(first_difference(fused, pair), -1) << lane.name;
          EXPECT_EQ(found.row, expected.row) << lane.name;
          EXPECT_EQ(found.row, m > 100 ? 111 : -1);
        }
      }
    }
  }
}

TEST(ScaledMMBackend, FollowsTheVariableAndRefusesOtherDevicesByName) {
  const char* variable = "OASR_SCALED_MM_BACKEND";
  unsetenv(variable);
  EXPECT_EQ(selected_scaled_mm_backend().value(), ScaledMMBackend::native);
  for (const auto& [name, backend] : {std::pair{"auto", ScaledMMBackend::native}, {"native", ScaledMMBackend::native},
                                      {"reference", ScaledMMBackend::reference}}) {
    setenv(variable, name, 1);
    EXPECT_EQ(selected_scaled_mm_backend().value(), backend) << name;
  }
  for (const char* name : {"mma_sync", "cublaslt"}) {
    setenv(variable, name, 1);
    const auto refused = selected_scaled_mm_backend();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
    EXPECT_NE(refused.error().what.find(name), std::string::npos);
  }
  setenv(variable, "fast", 1);
  EXPECT_EQ(selected_scaled_mm_backend().error().code, ErrorCode::invalid_argument);
  unsetenv(variable);
}

TEST(PackedInt8Weight, ReturnsItsRowsAndSums) {
  const auto rows = random_int8(37 * 19, 7);
  const auto weight = PackedInt8Weight::pack(37, 19, rows, random_scales(37, 3));
  EXPECT_EQ(weight.panels(), 3);
  EXPECT_EQ(weight.bytes(), 48u * 64 + 2 * 48 * 4);
  std::vector<std::int8_t> row(19);
  for (std::int64_t n = 0; n < 37; ++n) {
    weight.unpack_row(n, row);
    int sum = 0;
    for (std::size_t i = 0; i < 19; ++i) {
      EXPECT_EQ(row[i], rows[size(n) * 19 + i]);
      sum += row[i];
    }
    EXPECT_EQ(weight.offset()[n], -128 * sum);
  }
}

}  // namespace
}  // namespace oasr::kernels
