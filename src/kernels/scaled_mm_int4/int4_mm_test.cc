#include <gtest/gtest.h>

#include "kernels/lane_report.h"
#include "kernels/scaled_mm/testing.h"
#include "kernels/scaled_mm_int4/op.h"

namespace oasr::kernels {

constexpr std::int64_t kGroup = PackedInt4Weight::kGroup;

// Codes with scales and zeros that are whatever the format allows.
struct RandomGroups {
  RandomGroups(std::int64_t n, std::int64_t k, unsigned seed) : n(n), k(k), codes(size(n * k)) {
    std::mt19937 engine(seed);
    const auto from = [&](int least, int greatest) {
      return std::uniform_int_distribution<int>(least, greatest)(engine);
    };
    for (std::int64_t g = 0; g < n * k / kGroup; ++g) {
      const int s = from(0, 3) == 0 ? from(18, 127) : from(1, 17), range = std::min(15, 255 / s);
      const int least = from(0, 15 - range), greatest = least + range;
      scale.push_back(static_cast<std::uint8_t>(s));
      zero.push_back(static_cast<std::int16_t>(from(greatest * s - 127, least * s + 128)));
      for (std::int64_t i = 0; i < kGroup; ++i)
        codes[size(g * kGroup + i)] = static_cast<std::uint8_t>(from(least, greatest));
    }
  }
  PackedInt4Weight pack(std::span<const float> channel_scale) const {
    return PackedInt4Weight::pack_groups(n, k, codes, channel_scale, scale, zero);
  }
  std::int64_t n, k;
  std::vector<std::uint8_t> codes, scale;
  std::vector<std::int16_t> zero;
};

std::vector<std::uint8_t> random_codes(std::int64_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<std::uint8_t> codes(size(count));
  for (std::uint8_t& code : codes) code = static_cast<std::uint8_t>(engine() % 16);
  return codes;
}

template <>
struct WeightKind<PackedInt4Weight> {
  // Groups where K has whole ones and the seed is odd; else channels, with integer zeros, float zeros or
  // both.
  static PackedInt4Weight make(std::int64_t n, std::int64_t k, unsigned seed) {
    const auto scale = random_scales(n, seed + 3);
    if (k % kGroup == 0 && seed % 2 == 1) return RandomGroups(n, k, seed + 2).pack(scale);
    return PackedInt4Weight::pack_channels(
        n, k, random_codes(n * k, seed + 2), scale,
        seed % 3 == 0 ? std::vector<std::uint8_t>() : random_codes(n, seed + 9),
        seed % 3 == 1 ? std::vector<float>() : random_floats(n, seed + 10, 0.05f));
  }
  static auto lanes() { return runnable(int4_mm_lanes()); }
  static std::size_t scratch(std::int64_t m, std::int64_t k) { return int4_mm_scratch(m, k); }
};
using Case = ScaledMMCase<PackedInt4Weight>;
using QuantizingCase = QuantizingScaledMMCase<PackedInt4Weight>;

namespace {

[[maybe_unused]] const auto* const kLanes = report_lanes("scaled_mm_int4", int4_mm_lanes);

// The int8 weight that `weight` stands for.
PackedInt8Weight as_int8(const PackedInt4Weight& weight) {
  std::vector<std::int8_t> rows(size(weight.n() * weight.k()));
  for (std::int64_t n = 0; n < weight.n(); ++n) {
    weight.unpack_row(n, std::span(rows).subspan(size(n * weight.k()), size(weight.k())));
  }
  return PackedInt8Weight::pack(weight.n(), weight.k(), rows, {weight.scale(), size(weight.n())});
}

// One group's codes, scale and zero for all of an [n, k] weight.
PackedInt4Weight uniform(std::int64_t n, std::int64_t k, std::uint8_t code, std::uint8_t scale,
                         std::int16_t zero) {
  RandomGroups all(n, k, 1);
  std::fill(all.codes.begin(), all.codes.end(), code);
  std::fill(all.scale.begin(), all.scale.end(), scale);
  std::fill(all.zero.begin(), all.zero.end(), zero);
  return all.pack(random_scales(n, 2));
}

TEST(Int4MMLanes, EqualTheReferenceForEveryKOfChannels) {
  for (std::int64_t k = 1; k <= 133; ++k) {
    for (const auto& [m, n] : {std::pair{1, 67}, {3, 16}, {7, 33}, {17, 5}}) {
      Case(m, n, k, static_cast<unsigned>(7 * k + m) & ~1u).expect_lanes_equal();
    }
  }
}

TEST(Int4MMLanes, EqualTheReferenceForEveryNumberOfGroups) {
  for (std::int64_t k = kGroup; k <= 12 * kGroup; k += kGroup) {
    for (const auto& [m, n] : {std::pair{1, 67}, {2, 40}, {3, 16}, {4, 130}, {7, 33}, {33, 80}}) {
      Case(m, n, k, static_cast<unsigned>(k + m) | 1u).expect_lanes_equal();
    }
  }
}

TEST(Int4MMLanes, EqualTheReferenceForEveryN) {
  for (std::int64_t n = 1; n <= 67; ++n) {
    for (const auto& [m, k] : {std::pair{1, 130}, {2, 256}, {6, 5}, {20, 128}}) {
      Case(m, n, k, static_cast<unsigned>(7 * n + m)).expect_lanes_equal();
    }
  }
}

TEST(Int4MMLanes, EqualTheReferenceForEveryM) {
  for (std::int64_t m = 1; m <= 67; ++m) {
    for (const auto& [n, k] : {std::pair{67, 67}, {16, 128}, {81, 384}}) {
      Case(m, n, k, static_cast<unsigned>(7 * m + n)).expect_lanes_equal();
    }
  }
}

TEST(Int4MMLanes, EqualTheReferenceOnTheModelsShapes) {
  for (const auto& [m, n, k] : {std::tuple{50, 512, 512},
                                {96, 384, 384},
                                {3, 2048, 512},
                                {37, 384, 1536},
                                {9, 512, 2048},
                                {5, 256, 2048},
                                {16, 512, 240},
                                {1, 512, 2048}}) {
    for (const unsigned form : {0u, 1u})
      Case(m, n, k, 2 * static_cast<unsigned>(n + k + m) + form).expect_lanes_equal();
  }
}

TEST(Int4MMLanes, HoldTheGreatestSums) {
  // Pairs of products of 15 · 128, the ends of the int8 range with small, with great scales (whose sums of
  // groups wrap on the way), and rows of zeros.
  struct End {
    std::uint8_t code, scale;
    std::int16_t zero;
  };
  const End ends[] = {{15, 17, 128},   {0, 17, 128},    {15, 1, 0},    {15, 1, 15},
                      {15, 127, 1778}, {15, 127, 2033}, {0, 127, -127}};
  for (const auto& [code, scale, zero] : ends) {
    for (const std::int8_t a : {std::int8_t{127}, std::int8_t{-128}, std::int8_t{0}}) {
      for (const std::int64_t m : {1, 5, 33}) {
        Case test(m, 40, 2048, 1);
        std::fill(test.a.begin(), test.a.end(), a);
        test.weight = uniform(40, 2048, code, scale, zero);
        test.expect_lanes_equal();
      }
    }
  }
}

TEST(Int4MMLanes, HoldTheGreatestK) {
  const std::int64_t k = PackedInt4Weight::kGreatestK, whole = k / kGroup * kGroup;
  for (const std::int16_t zero : {std::int16_t{1778}, std::int16_t{2033}}) {
    Case groups(2, 3, whole, 1);
    std::fill(groups.a.begin(), groups.a.end(), std::int8_t{-128});
    groups.weight = uniform(3, whole, 15, 127, zero);
    groups.expect_lanes_equal();
  }
  Case channels(2, 3, k, 2);
  std::fill(channels.a.begin(), channels.a.end(), std::int8_t{-128});
  channels.weight = PackedInt4Weight::pack_channels(3, k, std::vector<std::uint8_t>(size(3 * k), 15),
                                                    random_scales(3, 2), std::vector<std::uint8_t>{0, 8, 15});
  channels.expect_lanes_equal();
}

TEST(Int4MMLanes, TreatOddScalesZerosBiasesAndResidualsLikeTheReference) {
  for (const float odd : {kInf, -kInf, std::nanf(""), 3e38f, 1e-45f, -1e-40f, 1e30f, 1e-30f, 0.0f, -0.0f}) {
    for (const std::int64_t m : {1, 9, 20}) {
      for (const int where : {0, 1, 2, 3, 4, 5}) {
        Case test(m, 40, 30, static_cast<unsigned>(4 * m + where));
        test.with_residual = test.with_bias = true;
        auto scales = random_scales(40, 8), zeros = random_floats(40, 9);
        if (where == 0) test.a_scale[size(m - 1)] = odd;
        if (where == 1) scales[39] = odd;
        if (where == 2) test.bias[17] = odd;
        if (where == 3) test.residual[5] = odd;
        if (where == 4 && std::isfinite(odd)) test.multiplier[20] = odd;
        if (where == 5) zeros[39] = odd;
        test.weight = PackedInt4Weight::pack_channels(40, 30, random_codes(1200, 3), scales, {}, zeros);
        test.expect_lanes_equal();
      }
    }
  }
}

TEST(Int4MMLanes, GiveTheBitsOfInt8OnTheWeightsTheyStandFor) {
  ThreadPool pool(2);
  for (const auto& [m, n, k, seed] : {std::tuple{1, 67, 256, 1u},
                                      {7, 40, 384, 11u},
                                      {50, 130, 1024, 3u},
                                      {5, 33, 61, 4u},
                                      {4, 48, 200, 10u}}) {
    QuantizingCase four(m, n, k, k + 2, seed);
    if (four.product.weight.float_zero() != nullptr) {
      four.product.weight = PackedInt4Weight::pack_channels(
          n, k, random_codes(n * k, seed), random_scales(n, seed), random_codes(n, seed + 1));
    }
    const PackedInt8Weight eight = as_int8(four.product.weight);
    const auto with_eight = [&]<template <class> class Args>(const Args<PackedInt4Weight>& args, auto copy) {
      copy.weight = &eight;
      copy.m = args.m;
      copy.bias = args.bias;
      copy.activation = args.activation;
      return copy;
    };
    const auto mm = four.product.args();
    const auto mm8 = with_eight(mm, ScaledMMArgs{.a = mm.a, .lda = mm.lda, .a_scale = mm.a_scale});
    const auto dynamic8 = with_eight(
        four.dynamic(),
        DynamicScaledMMArgs{.x = four.x.data(), .ldx = four.ldx, .smooth_inv = four.dynamic().smooth_inv});
    const auto fixed8 = with_eight(four.fixed(), StaticScaledMMArgs{.x = four.x.data(),
                                                                    .ldx = four.ldx,
                                                                    .multiplier = four.multiplier.data(),
                                                                    .input_scale = four.fixed().input_scale});
    for (const Int4MMLane& lane : WeightKind<PackedInt4Weight>::lanes()) {
      ExecContext context{&pool, lane.isa};
      const auto expect_equal = [&]<class T>(T, auto run8, auto run4, const char* form) {
        std::vector<T> expected, got;
        run8(four.product.to(expected));
        run4(four.product.to(got));
        EXPECT_EQ(std::memcmp(expected.data(), got.data(), expected.size() * sizeof(T)), 0)
            << lane.name << form << " m " << four.product.m;
      };
      expect_equal(
          0.0f, [&](auto out) { scaled_mm(context, mm8, out); },
          [&](auto out) { scaled_mm(context, mm, out); }, " mm");
      expect_equal(
          std::int8_t{}, [&](auto out) { EXPECT_FALSE(scaled_mm_quant(context, mm8, out)); },
          [&](auto out) { EXPECT_FALSE(scaled_mm_quant(context, mm, out)); }, " quant");
      expect_equal(
          0.0f, [&](auto out) { EXPECT_FALSE(scaled_mm_dynamic(context, dynamic8, out)); },
          [&](auto out) { EXPECT_FALSE(scaled_mm_dynamic(context, four.dynamic(), out)); }, " dynamic");
      expect_equal(
          std::int8_t{}, [&](auto out) { EXPECT_FALSE(scaled_mm_static(context, fixed8, out)); },
          [&](auto out) { EXPECT_FALSE(scaled_mm_static(context, four.fixed(), out)); }, " static");
    }
  }
}

TEST(Int4MMLanes, KeepARowsBitsWhateverItsNeighbours) {
  Case test(90, 100, 256, 7);
  for (const Int4MMLane& lane : WeightKind<PackedInt4Weight>::lanes()) {
    ThreadPool pool(1);
    ExecContext context{&pool, lane.isa};
    std::vector<float> together, alone;
    scaled_mm(context, test.args(), test.to(together));
    const FloatOutput out = test.to(alone);
    for (std::int64_t m = 0; m < 90; ++m) {
      Int4MMArgs row = test.args();
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

TEST(Int4MM, EqualsTheReferenceForAnyNumberOfThreads) {
  for (const int threads : {1, 2, 3, 16}) {
    ThreadPool pool(threads);
    for (const auto& [m, k] : {std::pair{1, 130}, {5, 128}, {40, 100}, {97, 256}, {300, 70}, {100, 1152}}) {
      Case test(m, 333, k, static_cast<unsigned>(m));
      std::vector<float> expected, y;
      std::vector<std::int8_t> expected_q, q;
      scaled_mm_reference(test.args(), test.to(expected));
      EXPECT_FALSE(scaled_mm_quant_reference(test.args(), test.to(expected_q)));
      for (const Int4MMLane& lane : WeightKind<PackedInt4Weight>::lanes()) {
        ExecContext context{&pool, lane.isa};
        scaled_mm(context, test.args(), test.to(y));
        EXPECT_EQ(first_difference(y, expected), -1) << lane.name << " threads " << threads << " m " << m;
        EXPECT_FALSE(scaled_mm_quant(context, test.args(), test.to(q)));
        EXPECT_EQ(q, expected_q) << lane.name << " threads " << threads << " m " << m;
      }
    }
  }
}

TEST(Int4MM, RunsTheLaneThatIsAskedForOrTheBestBelow) {
  for (const Int4MMLane& lane : int4_mm_lanes()) EXPECT_EQ(int4_mm_lane(lane.isa).name, lane.name);
  if (int4_mm_lanes().size() == 1) return;
  for (const auto& [isa, name] : {std::pair{Isa::scalar, "scalar"},
                                  {Isa::avx2, "avx2"},
                                  {Isa::avx_vnni, "avx2"},
                                  {Isa::avx512, "avx2"},
                                  {Isa::avx512_vnni, "avx512_vnni"},
                                  {Isa::amx, "avx512_vnni"}}) {
    EXPECT_EQ(int4_mm_lane(isa).name, name);
  }
}

TEST(Int4MM, GivesTheWorkedValues) {
  // Two levels: codes 0, 5, 9, 14 with s = 16 and z = 7 stand for -112, -32, 32, 112.
  std::vector<std::uint8_t> codes(size(kGroup), 7);
  const std::uint8_t first[] = {0, 5, 9, 14};
  std::copy(std::begin(first), std::end(first), codes.begin());
  const float scale = 0.01f, a_scale = 0.25f;
  const auto group = PackedInt4Weight::pack_groups(
      1, kGroup, codes, {&scale, 1}, std::vector<std::uint8_t>{16}, std::vector<std::int16_t>{112});
  std::vector<std::int8_t> a(size(kGroup), 1);
  const std::int8_t activations[] = {2, -1, 3, 4};
  std::copy(std::begin(activations), std::end(activations), a.begin());
  // One level: y = 1/8 · (1/2 · (1 · 2 + 2 · 3) - 1/2 · (1 + 2)) = 5/16, with the sum of the codes of the
  // input.
  const float half = 0.5f, eighth = 0.125f;
  const std::uint8_t two[] = {2, 3}, one = 1;
  const std::int8_t input[] = {1, 2};
  const auto shifted = PackedInt4Weight::pack_channels(1, 2, two, {&half, 1}, {&one, 1});
  const auto corrected = PackedInt4Weight::pack_channels(1, 2, two, {&half, 1}, {}, {&half, 1});
  ThreadPool pool(1);
  for (const Int4MMLane& lane : WeightKind<PackedInt4Weight>::lanes()) {
    ExecContext context{&pool, lane.isa};
    float y = 0;
    const FloatOutput out{.y = &y, .ldy = 1};
    scaled_mm(context,
              {.a = a.data(), .a_scale = ActivationScale::per_tensor(&a_scale), .m = 1, .weight = &group},
              out);
    EXPECT_EQ(y, 0.25f * (0.01f * 352.0f)) << lane.name;
    for (const auto* weight : {&shifted, &corrected}) {
      scaled_mm(context,
                {.a = input, .a_scale = ActivationScale::per_tensor(&eighth), .m = 1, .weight = weight}, out);
      EXPECT_EQ(y, 5.0f / 16.0f) << lane.name;
    }
  }
}

TEST(Int4MMQuant, ReportsTheFirstRowThatIsNotFinite) {
  ThreadPool pool(2);
  for (const Int4MMLane& lane : WeightKind<PackedInt4Weight>::lanes()) {
    ExecContext context{&pool, lane.isa};
    Case test(200, 72, 128, 7);
    test.per_token = true;
    test.a_scale[150] = std::nanf("");
    test.a_scale[170] = kInf;
    std::vector<std::int8_t> expected, q;
    EXPECT_EQ(scaled_mm_quant_reference(test.args(), test.to(expected)).row, 150);
    EXPECT_EQ(scaled_mm_quant(context, test.args(), test.to(q)).row, 150) << lane.name;
    EXPECT_EQ(q, expected) << lane.name;
  }
}

TEST(Int4MMOfFloats, EqualsTheUnfusedPairOnEveryLane) {
  // The last row overlaps: a convolution of three taps.
  const std::tuple<int, int, int, int> shapes[] = {
      {1, 200, 130, 133}, {2, 67, 1, 1},       {4, 33, 128, 130},     {17, 5, 31, 40},   {130, 200, 256, 260},
      {300, 96, 70, 70},  {50, 512, 512, 512}, {97, 130, 1152, 1155}, {43, 67, 384, 128}};
  for (const int threads : {1, 2, 3, 16}) {
    ThreadPool pool(threads);
    for (const auto& [m, n, k, ldx] : shapes) {
      for (const unsigned form : {0u, 1u}) {
        const QuantizingCase test(m, n, k, ldx, 2 * static_cast<unsigned>(m + n + k) + form);
        for (const Int4MMLane& lane : WeightKind<PackedInt4Weight>::lanes()) {
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
}

TEST(Int4MMOfFloats, ReportsTheFirstRowThatIsNotFinite) {
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    for (const unsigned seed : {1u, 2u, 9u, 12u}) {
      const QuantizingCase alone(1, 20, 128, 128, seed, {127}),
          late(300, 72, 300, 301, seed, {299 * 301, 288 * 301 + 299}),
          none(9, 72, 30, 40, seed, {3 * 40 + 35});
      for (const Int4MMLane& lane : WeightKind<PackedInt4Weight>::lanes()) {
        ExecContext context{&pool, lane.isa};
        alone.expect_pairs_equal(context, std::string(lane.name), 0);
        late.expect_pairs_equal(context, std::string(lane.name), 288);
        none.expect_pairs_equal(context, std::string(lane.name), -1);
      }
    }
  }
}

TEST(Int4MMImplementations, GiveTheSameBitsFromEveryFunction) {
  ThreadPool pool(2);
  for (const Int4MMLane& lane : WeightKind<PackedInt4Weight>::lanes()) {
    for (const auto& [m, n, k, ldx] : {std::tuple{7, 67, 130, 133}, {50, 40, 256, 64}}) {
      const QuantizingCase test(m, n, k, ldx, 9);
      std::vector<std::vector<float>> floats;
      std::vector<std::vector<std::int8_t>> bytes;
      for (const ScaledMMBackend backend : {ScaledMMBackend::native, ScaledMMBackend::reference}) {
        const Int4MMImplementation& row = int4_mm_implementation(backend);
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
        floats.insert(floats.end(), std::begin(y), std::end(y));
        bytes.insert(bytes.end(), std::begin(q), std::end(q));
      }
      for (std::size_t form = 0; form < 3; ++form) {
        EXPECT_EQ(first_difference(floats[form], floats[form + 3]), -1) << lane.name << " form " << form;
        EXPECT_EQ(bytes[form], bytes[form + 3]) << lane.name << " form " << form;
        EXPECT_NE(bytes[form], bytes[(form + 1) % 3]) << "the forms differ, so each function was its own";
      }
    }
    EXPECT_EQ(implementation_name(int4_mm_implementation(ScaledMMBackend::native), lane.isa),
              "scaled_mm_int4 " + std::string(lane.name));
  }
  EXPECT_EQ(implementation_name(int4_mm_implementation(ScaledMMBackend::reference), Isa::avx2),
            "scaled_mm_int4 reference");
  for (const auto& [backend, name] : scaled_mm_backend_names()) {
    const auto rows = int4_mm_implementations();
    EXPECT_EQ(std::ranges::count(rows, backend, &Int4MMImplementation::backend), runs_on(backend, false)) << name;
  }
}

TEST(PackedInt4Weight, ReturnsWhatItWasGivenInHalfTheBytes) {
  const RandomGroups given(37, 3 * kGroup, 7);
  const auto weight = given.pack(random_scales(37, 3));
  EXPECT_EQ(weight.panels(), 3);
  EXPECT_EQ(weight.bytes(), 48u * (3 * kGroup / 2 + 3 * 4) + 48 * 4);  // half a byte a code, four a group
  std::vector<std::uint8_t> codes(size(3 * kGroup));
  std::vector<std::int8_t> row(codes.size());
  for (std::int64_t n = 0; n < 37; ++n) {
    weight.unpack_codes(n, codes);
    weight.unpack_row(n, row);
    for (std::size_t i = 0; i < codes.size(); ++i) {
      const std::size_t at = size(n) * codes.size() + i, g = at / size(kGroup);
      EXPECT_EQ(codes[i], given.codes[at]);
      EXPECT_EQ(row[i], given.codes[at] * given.scale[g] - given.zero[g]);
    }
    for (std::int64_t g = 0; g < 3; ++g) {
      EXPECT_EQ(weight.group_scale(n, g), given.scale[size(3 * n + g)]);
      EXPECT_EQ(weight.group_zero(n, g), given.zero[size(3 * n + g)]);
    }
  }
  EXPECT_EQ(
      PackedInt4Weight::pack_channels(16, 65, random_codes(16 * 65, 1), random_scales(16, 2), {}).bytes(),
      16u * (128 / 2 + 4) + 16 * 4);
}

}  // namespace
}  // namespace oasr::kernels
