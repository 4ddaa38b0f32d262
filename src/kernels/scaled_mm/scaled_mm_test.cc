#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include "kernels/lane_report.h"
#include "kernels/scaled_mm/cuda.h"
#include "kernels/scaled_mm/implementation.h"
#include "kernels/scaled_mm/testing.h"

namespace oasr::kernels {

template <>
struct WeightKind<PackedInt8Weight> {
  static PackedInt8Weight make(std::int64_t n, std::int64_t k, unsigned seed) {
    return PackedInt8Weight::pack(n, k, random_int8(n * k, seed + 2), random_scales(n, seed + 3));
  }
  static auto lanes() { return runnable(scaled_mm_lanes()); }
  static std::size_t scratch(std::int64_t m, std::int64_t k) { return scaled_mm_scratch(m, k); }
};
using Case = ScaledMMCase<PackedInt8Weight>;
using QuantizingCase = QuantizingScaledMMCase<PackedInt8Weight>;

namespace {

[[maybe_unused]] const auto* const kLanes = report_lanes("scaled_mm", scaled_mm_lanes);

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

TEST(ScaledMMOfFloats, EqualsTheUnfusedPairOnEveryLane) {
  // The last two rows overlap: convolutions of three taps, stride 1 and 2.
  const std::tuple<int, int, int, int> shapes[] = {
      {1, 200, 130, 133}, {2, 67, 1, 1}, {4, 33, 67, 70}, {5, 16, 64, 64}, {17, 5, 31, 40}, {33, 80, 5, 9},
      {130, 200, 130, 140}, {300, 96, 70, 70}, {50, 512, 512, 512}, {97, 130, 1100, 1103}, {61, 48, 240, 80},
      {43, 67, 96, 64}};
  for (const int threads : {1, 2, 3, 16}) {
    ThreadPool pool(threads);
    for (const auto& [m, n, k, ldx] : shapes) {
      const QuantizingCase test(m, n, k, ldx, static_cast<unsigned>(m + n + k));
      for (const ScaledMMLane& lane : runnable(scaled_mm_lanes())) {
        if (lane.isa == Isa::scalar && threads > 2) continue;
        ExecContext context{&pool, lane.isa};
        const std::string what = std::string(lane.name) + " m " + std::to_string(m) + " n " +
                                 std::to_string(n) + " k " + std::to_string(k) + " threads " +
                                 std::to_string(threads);
        test.expect_pairs_equal(context, what, -1, threads == 1 && lane.isa == Isa::scalar);
      }
    }
  }
}

TEST(ScaledMMOfFloats, ReportsTheFirstRowThatIsNotFinite) {
  struct Odd {
    std::int64_t m, k, ldx;
    std::initializer_list<std::int64_t> at;
    std::int64_t row;
  };
  const Odd cases[] = {{1, 20, 20, {19}, 0},
                       {130, 70, 80, {111 * 80 + 7, 120 * 80}, 111},
                       {300, 300, 301, {299 * 301, 288 * 301 + 299}, 288},
                       // In a gap between rows: nobody reads it.
                       {9, 30, 40, {3 * 40 + 35}, -1},
                       // Rows that overlap: the value is of rows 6, 7 and 8.
                       {40, 48, 16, {8 * 16 + 1}, 6}};
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    for (const Odd& odd : cases) {
      for (const unsigned seed : {1u, 2u, 9u, 12u}) {
        const QuantizingCase test(odd.m, 72, odd.k, odd.ldx, seed, odd.at);
        for (const ScaledMMLane& lane : runnable(scaled_mm_lanes())) {
          ExecContext context{&pool, lane.isa};
          test.expect_pairs_equal(context, std::string(lane.name) + " m " + std::to_string(odd.m), odd.row,
                                  threads == 1 && lane.isa == Isa::scalar);
        }
      }
    }
  }
}

TEST(ScaledMMOfFloats, ReportsAnOutputThatIsNotFiniteWhereTheInputIs) {
  ThreadPool pool(2);
  for (const ScaledMMLane& lane : runnable(scaled_mm_lanes())) {
    ExecContext context{&pool, lane.isa};
    QuantizingCase test(20, 40, 30, 30, 1, {17 * 30});
    test.product.with_bias = true;
    test.product.bias[3] = kInf;
    std::vector<std::int8_t> q;
    EXPECT_EQ(scaled_mm_static(context, test.fixed(), test.product.to(q)).row, 0) << lane.name;
    EXPECT_EQ(scaled_mm_dynamic(context, test.dynamic(), test.product.to(q)).row, 0) << lane.name;
    std::vector<float> y;
    EXPECT_EQ(scaled_mm_static(context, test.fixed(), test.product.to(y)).row, 17) << lane.name;
    EXPECT_EQ(scaled_mm_dynamic(context, test.dynamic(), test.product.to(y)).row, 17) << lane.name;
  }
}

TEST(ScaledMMBackend, FollowsTheVariableAndRefusesOtherDevicesByName) {
  constexpr const char* kVariable = "OASR_SCALED_MM_BACKEND";
  constexpr auto kNative = ScaledMMBackend::native;
  struct Row {
    const char* name;
    std::optional<ScaledMMBackend> on_cpu, on_gpu;
  };
  constexpr Row kRows[] = {{"auto", kNative, kNative},
                           {"native", kNative, kNative},
                           {"cutlass", kNative, kNative},
                           {"reference", ScaledMMBackend::reference, std::nullopt},
                           {"mma_sync", std::nullopt, ScaledMMBackend::mma_sync},
                           {"cublaslt", std::nullopt, ScaledMMBackend::cublaslt}};
  unsetenv(kVariable);
  EXPECT_EQ(selected_scaled_mm_backend().value(), kNative);
  EXPECT_EQ(selected_scaled_mm_backend(true).value(), kNative);
  for (const Row& row : kRows) {
    setenv(kVariable, row.name, 1);
    for (const bool gpu : {false, true}) {
      const auto selected = selected_scaled_mm_backend(gpu);
      const auto& expected = gpu ? row.on_gpu : row.on_cpu;
      ASSERT_EQ(selected.has_value(), expected.has_value()) << row.name << gpu;
      if (expected) {
        EXPECT_EQ(*selected, *expected) << row.name << gpu;
        EXPECT_TRUE(runs_on(*selected, gpu));
      } else {
        EXPECT_EQ(selected.error().code, ErrorCode::unsupported);
        EXPECT_NE(selected.error().what.find(row.name), std::string::npos) << selected.error().what;
        EXPECT_EQ(selected.error().where, kVariable);
        EXPECT_EQ(selected.error().remedy, gpu ? "use --device cpu, or one of: auto, native, mma_sync, cublaslt"
                                               : "use one of: auto, native, reference");
      }
    }
  }
  setenv(kVariable, "fast", 1);
  EXPECT_EQ(selected_scaled_mm_backend().error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(selected_scaled_mm_backend(true).error().remedy, "use one of: auto, native, mma_sync, cublaslt");
  unsetenv(kVariable);
}

TEST(ScaledMMImplementations, GiveTheSameBitsFromEveryFunction) {
  ThreadPool pool(2);
  for (const ScaledMMLane& lane : runnable(scaled_mm_lanes())) {
    for (const auto& [m, n, k, ldx] : {std::tuple{7, 67, 130, 133}, {50, 40, 96, 32}}) {
      const QuantizingCase test(m, n, k, ldx, 8);
      std::vector<std::vector<float>> floats;
      std::vector<std::vector<std::int8_t>> bytes;
      for (const ScaledMMBackend backend : {ScaledMMBackend::native, ScaledMMBackend::reference}) {
        const ScaledMMImplementation& row = scaled_mm_implementation(backend);
        ASSERT_EQ(row.backend, backend);
        // Without threads only the reference runs.
        ExecContext context{backend == ScaledMMBackend::native ? &pool : nullptr, lane.isa};
        std::vector<float> y[3];
        std::vector<std::int8_t> q[3];
        row.reserve(context, k);
        row.mm(context, test.product.args(), test.product.to(y[0]));
        EXPECT_FALSE(row.dynamic(context, test.dynamic(), test.product.to(y[1])));
        EXPECT_FALSE(row.fixed(context, test.fixed(), test.product.to(y[2])));
        EXPECT_FALSE(row.mm_quant(context, test.product.args(), test.product.to(q[0])));
        EXPECT_FALSE(row.dynamic_quant(context, test.dynamic(), test.product.to(q[1])));
        EXPECT_FALSE(row.fixed_quant(context, test.fixed(), test.product.to(q[2])));
        for (int form = 0; form < 3; ++form) {
          floats.push_back(y[form]);
          bytes.push_back(q[form]);
        }
      }
      for (std::size_t form = 0; form < 3; ++form) {
        EXPECT_EQ(first_difference(floats[form], floats[form + 3]), -1) << lane.name << " form " << form;
        EXPECT_EQ(bytes[form], bytes[form + 3]) << lane.name << " form " << form;
        EXPECT_NE(bytes[form], bytes[(form + 1) % 3]) << "the forms differ, so each function was its own";
      }
    }
  }
}

TEST(ScaledMMImplementations, AreNamedAfterTheLaneThatRuns) {
  const auto& native = scaled_mm_implementation(ScaledMMBackend::native);
  const auto& reference = scaled_mm_implementation(ScaledMMBackend::reference);
  const bool x86 = scaled_mm_lanes().size() > 1;
  for (const auto& [isa, lane] : {std::pair{Isa::scalar, "scalar"}, {Isa::avx2, "avx2"},
                                  {Isa::avx512, "avx2"}, {Isa::avx512_vnni, "avx512_vnni"}, {Isa::amx, "amx"}}) {
    EXPECT_EQ(implementation_name(native, isa), std::string("scaled_mm ") + (x86 ? lane : "scalar"));
    EXPECT_EQ(implementation_name(reference, isa), "scaled_mm reference");
  }
  EXPECT_EQ(scaled_mm_implementations().size(), scaled_mm_backend_names().size());
}

TEST(ScaledMMImplementations, AreNamedAfterTheKernelsOfAGpu) {
  const GpuInfo h200{.name = "NVIDIA H200", .major = 9, .minor = 0}, l4{.name = "NVIDIA L4", .major = 8, .minor = 9};
  const auto name = [](ScaledMMBackend backend, const GpuInfo& gpu) {
    return implementation_name(scaled_mm_implementation(backend), gpu);
  };
  // Of a build with kernels for sm_90a, many rows of an H200 are multiplied by wgmma.
  const bool wgmma = scaled_mm_has_wgmma(h200);
  EXPECT_EQ(name(ScaledMMBackend::native, h200), wgmma ? "scaled_mm wgmma+mma_sync" : "scaled_mm mma_sync");
  EXPECT_EQ(name(ScaledMMBackend::native, l4), "scaled_mm mma_sync");
  for (const GpuInfo& gpu : {h200, l4}) {
    EXPECT_EQ(name(ScaledMMBackend::mma_sync, gpu), "scaled_mm mma_sync");
    EXPECT_EQ(name(ScaledMMBackend::cublaslt, gpu), "scaled_mm cublaslt");
  }
}

TEST(ScaledMMImplementations, TakeEveryWeightButForCublasLt) {
  struct Row {
    std::int64_t n, k;
    bool taken;
  };
  // Rows of the input begin at multiples of 16 bytes, and 32 rows of sums have to fit.
  constexpr Row kRows[] = {{8, 16, true},        {16, 48, true},       {4, 16, false},      {8, 24, false},    {8, 8, false},
                           {51'864, 384, true}, {51'865, 384, false}, {524'288, 16, true}, {524'296, 16, false}};
  for (const Row& row : kRows) {
    for (const ScaledMMImplementation& implementation : scaled_mm_implementations()) {
      const Status taken = check_product(implementation, row.n, row.k);
      EXPECT_EQ(taken.has_value(), row.taken || implementation.backend != ScaledMMBackend::cublaslt)
          << row.n << " x " << row.k;
      EXPECT_TRUE(taken || taken.error().code == ErrorCode::unsupported);
    }
  }
  EXPECT_EQ(check_product(scaled_mm_implementation(ScaledMMBackend::cublaslt), 8, 24).error().message(),
            "cuBLASLt multiplies int8 where the input is a multiple of 16 wide and the output a multiple of 8, at most "
            "524288, and this goes from 24 to 8 (unset OASR_SCALED_MM_BACKEND)");
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
