// The sums of every lane, bit for bit, against plain integers; and the order of what follows them.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/scaled_mm/testing.h"
#include "kernels/scaled_mm_int4/int4_sums_testing.h"

namespace oasr::kernels {
namespace {

constexpr std::int64_t kGroup = PackedInt4Weight::kGroup;

// The lanes that this processor has.
std::vector<std::pair<std::string_view, Int4SumsFunction*>> lanes() {
  std::vector<std::pair<std::string_view, Int4SumsFunction*>> all;
  for (const Int4MMLane& lane : runnable(int4_mm_lanes())) {
    Int4SumsFunction* sums = lane.name == "scalar" ? int4_sums_scalar : nullptr;
#if defined(__x86_64__)
    if (lane.name == "avx2") sums = int4_sums_avx2;
    if (lane.name == "avx512_vnni") sums = int4_sums_avx512_vnni;
#endif
    EXPECT_NE(sums, nullptr) << "no sums of the lane " << lane.name;
    if (sums != nullptr) all.emplace_back(lane.name, sums);
  }
  return all;
}

struct Group {
  int least, most;  // codes
  int scale, zero;
  int value(int code) const { return code * scale - zero; }
  bool has_byte_offset() const { return zero >= -127 && zero <= 128 && most * scale + 128 - zero <= 255; }
};

// What a group may be at its edges: zeros in and beyond the range that an offset of bytes has.
constexpr Group kGroups[] = {{0, 15, 16, 128}, {0, 15, 1, -112}, {0, 15, 1, 15},    {0, 15, 17, 128},
                             {0, 0, 1, -127},  {1, 2, 127, 127}, {8, 15, 16, 240},  {9, 10, 16, 240},
                             {10, 15, 17, 255}, {1, 2, 127, 254}, {14, 15, 17, 238}};

struct Problem {
  std::int64_t m, n, k;
  std::vector<std::int8_t> a;  // [m, k]
  std::vector<std::int8_t> w;  // [n, k], what the codes stand for
  PackedInt4Weight weight;

  // Groups in turn; rows of the ends of int8 among random ones.
  Problem(std::int64_t m, std::int64_t n, std::int64_t k, unsigned seed)
      : m(m), n(n), k(k), a(random_int8(m * k, seed)), w(size(n * k)) {
    std::mt19937 random(seed);
    std::vector<std::uint8_t> codes(w.size()), scales;
    std::vector<std::int16_t> zeros;
    for (std::int64_t g = 0; g < n * k / kGroup; ++g) {
      const Group& group = kGroups[size(g + g / (k / kGroup)) % std::size(kGroups)];
      scales.push_back(static_cast<std::uint8_t>(group.scale));
      zeros.push_back(static_cast<std::int16_t>(group.zero));
      for (std::int64_t i = g * kGroup; i < (g + 1) * kGroup; ++i) {
        const int code = group.least + static_cast<int>(random() % unsigned(group.most - group.least + 1));
        codes[size(i)] = static_cast<std::uint8_t>(code);
        w[size(i)] = static_cast<std::int8_t>(group.value(code));
      }
    }
    for (std::int64_t row = 0; row < m; row += 3) {
      const auto end = row % 2 == 0 ? std::int8_t{-128} : std::int8_t{127};
      std::fill_n(a.begin() + row * k, k, end);
    }
    weight = PackedInt4Weight::pack_groups(n, k, codes, random_scales(n, seed), scales, zeros);
  }

  std::int32_t sum(std::int64_t row, std::int64_t channel) const {
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < k; ++i) sum += a[size(row * k + i)] * w[size(channel * k + i)];
    return static_cast<std::int32_t>(sum);
  }
};

// All lanes, the panels cut in two anywhere.
void expect_sums(const Int4MMArgs& args, std::int64_t n, const std::vector<std::int32_t>& expected) {
  const std::int64_t panels = args.weight->panels(), ld = panels * PackedInt4Weight::kPanel;
  std::vector<std::byte> memory(int4_mm_scratch(args.m, args.weight->k()) + 64);
  std::byte* scratch = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64;
  for (const auto& [name, run] : lanes()) {
    for (std::int64_t cut = 0; cut < panels; cut += 3) {
      std::vector<std::int32_t> sums(size(args.m * ld), 12345);
      run(args, {sums.data(), ld}, 0, cut, scratch);
      run(args, {sums.data(), ld}, cut, panels, scratch);
      for (std::int64_t i = 0; i < args.m * n; ++i) {
        ASSERT_EQ(sums[size(i / n * ld + i % n)], expected[size(i)])
            << name << " m " << args.m << ", row " << i / n << ", channel " << i % n << ", cut " << cut;
      }
    }
  }
}

TEST(Int4Sums, AreThoseOfPlainIntegersInEveryLaneForEveryTailOfRows) {
  for (const std::int64_t m : {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 18, 31}) {
    for (const auto& [n, k] : {std::pair{1, 128}, {70, 256}, {129, 12 * 128}}) {
      const Problem problem(m, n, k, static_cast<unsigned>(m + n));
      std::vector<std::int32_t> expected;
      for (std::int64_t i = 0; i < m * n; ++i) expected.push_back(problem.sum(i / n, i % n));
      expect_sums({.a = problem.a.data(), .lda = k, .m = m, .weight = &problem.weight}, n, expected);
    }
  }
}

// 65793 columns is where products that shift a weight to be unsigned could leave int32, 131071 where any may:
// ours hold to the last one. -128 · -128 and 15 codes of one sign.
TEST(Int4Sums, HoldOnBothSidesOfTheBoundOfUnsignedWeightsAndAtTheGreatestK) {
  for (const std::int64_t k : {65792 / 128 * 128, 65793, 65794, 131071}) {
    for (const int zero : {0, 15}) {
      const std::vector<std::int8_t> a(size(5 * k), std::int8_t{-128});
      const std::vector<std::uint8_t> codes(size(3 * k), zero == 0 ? 15 : 0);
      const auto weight = PackedInt4Weight::pack_channels(3, k, codes, random_scales(3, 1),
                                                          std::vector<std::uint8_t>(3, std::uint8_t(zero)));
      const auto sum = static_cast<std::int32_t>(-128 * k * (zero == 0 ? 15 : -15));
      expect_sums({.a = a.data(), .lda = k, .m = 5, .weight = &weight}, 3,
                  std::vector<std::int32_t>(15, sum));
    }
  }
  for (const std::int64_t k : {65792, 65920, 130944}) {  // multiples of 128 around the bounds
    const std::vector<std::int8_t> a(size(5 * k), std::int8_t{-128});
    const std::vector<std::uint8_t> codes(size(3 * k), 0);
    const auto groups = size(3 * k / kGroup);
    const auto weight = PackedInt4Weight::pack_groups(3, k, codes, random_scales(3, 1),
                                                      std::vector<std::uint8_t>(groups, 16),
                                                      std::vector<std::int16_t>(groups, 128));
    const auto sum = static_cast<std::int32_t>(k * 128 * 128);
    expect_sums({.a = a.data(), .lda = k, .m = 5, .weight = &weight}, 3, std::vector<std::int32_t>(15, sum));
  }
}

// A lane has no second way to decode for groups whose zeros are out of a byte's range: it needs none.
TEST(Int4Sums, OnePathServesGroupsWithAndWithoutByteOffsets) {
  const auto with = std::ranges::count_if(kGroups, &Group::has_byte_offset);
  EXPECT_GE(with, 4);
  EXPECT_GE(std::ssize(kGroups) - with, 4);
  for (const Group& group : kGroups) {
    for (const int code : {group.least, group.most}) {
      EXPECT_TRUE(group.value(code) >= -128 && group.value(code) <= 127 && code * group.scale <= 255);
    }
  }
  const Problem problem(7, 64, std::ssize(kGroups) * kGroup, 3);  // every group in every channel
  std::vector<std::int32_t> expected;
  for (std::int64_t i = 0; i < 7 * 64; ++i) expected.push_back(problem.sum(i / 64, i % 64));
  expect_sums({.a = problem.a.data(), .lda = problem.k, .m = 7, .weight = &problem.weight}, 64, expected);
}

// y = a_scale · (w_scale · float(sum)) + bias, each operation rounded; with zeros that are floats
// a_scale · fma(-float(row sum), zero, w_scale · float(sum)) + bias. Other orders give other bits here.
TEST(Int4MM, ScalesTheSumByTheChannelThenByTheTokenThenAddsTheBias) {
  constexpr std::int64_t kM = 5, kN = 48, kK = 4096;
  const auto a = random_int8(kM * kK, 1);
  std::vector<std::uint8_t> codes(size(kN * kK));
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>((i * 7 + i / 5) % 16);
  const auto scale = random_scales(kN, 2), a_scale = random_scales(kM, 3), zero = random_floats(kN, 4, 0.05f),
             bias = random_floats(kN, 5);
  const auto integers = PackedInt4Weight::pack_channels(kN, kK, codes, scale, std::vector<std::uint8_t>(kN, 7));
  const auto floats = PackedInt4Weight::pack_channels(kN, kK, codes, scale, {}, zero);
  ThreadPool pool(2);
  for (const bool with_floats : {false, true}) {
    const Int4MMArgs args{.a = a.data(),
                          .lda = kK,
                          .a_scale = ActivationScale::per_token(a_scale.data()),
                          .m = kM,
                          .weight = with_floats ? &floats : &integers,
                          .bias = bias.data()};
    std::vector<float> expected(size(kM * kN)), y(expected.size());
    int channel_last = 0, one_factor = 0, contracted = 0;
    for (std::int64_t m = 0; m < kM; ++m) {
      std::int64_t row_sum = 0;
      for (std::int64_t k = 0; k < kK; ++k) row_sum += a[size(m * kK + k)];
      for (std::int64_t n = 0; n < kN; ++n) {
        std::int64_t sum = 0;
        for (std::int64_t k = 0; k < kK; ++k) {
          sum += a[size(m * kK + k)] * (codes[size(n * kK + k)] - (with_floats ? 0 : 7));
        }
        const float s = scale[size(n)], x = a_scale[size(m)], b = bias[size(n)];
        const auto acc = static_cast<float>(sum), rows = -static_cast<float>(row_sum);
        const auto shifted = [&](float product) {
          return with_floats ? std::fma(rows, zero[size(n)], product) : product;
        };
        float& value = expected[size(m * kN + n)];
        value = x * shifted(s * acc) + b;
        channel_last += value != shifted(s * (x * acc)) + b;
        one_factor += value != (x * s) * acc + b;
        contracted += value != std::fma(x, shifted(s * acc), b);
      }
    }
    EXPECT_TRUE(channel_last > 0 && one_factor > 0 && contracted > 0) << "the order can be seen";
    const FloatOutput out{.y = y.data(), .ldy = kN};
    scaled_mm_reference(args, out);
    EXPECT_EQ(first_difference(y, expected), -1) << "reference";
    for (const Int4MMLane& lane : runnable(int4_mm_lanes())) {
      ExecContext context{&pool, lane.isa};
      scaled_mm(context, args, out);
      EXPECT_EQ(first_difference(y, expected), -1) << lane.name;
    }
  }
}

}  // namespace
}  // namespace oasr::kernels
