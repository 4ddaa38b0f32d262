#include "formats/w4_packed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "formats/testing.h"

namespace oasr::formats {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto kPre = ZeroDomain::pre_scaled, kPost = ZeroDomain::post_scaled;
constexpr auto kGrouped = W4Form::per_group, kChannel = W4Form::per_channel;

PackedW4 packed(const W4Weight& weight) {
  auto result = pack(weight);
  EXPECT_TRUE(result) << result.error().message();
  return std::move(result).value();
}

TEST(Pack, IsUndoneByUnpackOnEveryShape) {
  struct Shape {
    W4Form form;
    std::int64_t n, k;
  };
  unsigned seed = 0;
  for (const auto& [form, n, k] :
       {Shape{kGrouped, 32, 128}, Shape{kGrouped, 96, 128}, Shape{kGrouped, 64, 384}, Shape{kChannel, 32, 32},
        Shape{kChannel, 32, 96}, Shape{kChannel, 128, 160}}) {
    for (const ZeroDomain domain : {kPre, kPost}) {
      const W4Weight weight = random_weight(form, domain, n, k, ++seed);
      ASSERT_TRUE(check(weight, CodeSet::all)) << check(weight).error().message();
      const auto back = unpack(packed(weight).view(), domain);
      ASSERT_TRUE(back) << back.error().message();
      EXPECT_EQ(*back, weight);
    }
  }
}

TEST(Pack, KeepsZerosThatNoByteHoldsAsLongAsTheirCodesAreInt8) {
  W4Weight weight = random_weight(kGrouped, kPre, 32, 128);
  for (auto& code : weight.codes) code = static_cast<std::uint8_t>(8 + code / 2);
  weight.group_scale.assign(32, 16);
  weight.scaled_zero.assign(32, 15 * 16);
  ASSERT_TRUE(check(weight));
  const auto back = unpack(packed(weight).view(), kPre);
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ(*back, weight);
}

TEST(Tile, Bytes0And4And8HoldWhatTheLayoutSays) {
  W4Weight weight = random_weight(kChannel, kPre, 32, 32);
  for (std::int64_t n = 0; n < 32; ++n) {
    for (std::int64_t k = 0; k < 32; ++k) {
      weight.codes[static_cast<std::size_t>(n * 32 + k)] =
          static_cast<std::uint8_t>((5 * (n / 16) + 7 * (n % 16) + 7 * (k / 16) + 3 * (k % 16)) % 16);
    }
  }
  const PackedW4 out = packed(weight);
  const auto code = [&](int n, int k) { return weight.codes[static_cast<std::size_t>(n * 32 + k)]; };
  EXPECT_EQ(out.qweight[0], code(0, 0) + 16 * code(16, 0));
  EXPECT_EQ(out.qweight[4], code(8, 0) + 16 * code(24, 0));
  EXPECT_EQ(out.qweight[8], code(0, 16) + 16 * code(16, 16));
  EXPECT_THAT((std::array{out.qweight[0], out.qweight[4], out.qweight[8]}), ElementsAre(80, 0xD8, 0xC7));
}

TEST(Tile, EveryNibbleHasOnePlace) {
  constexpr std::int64_t kN = 64, kK = 96;
  std::vector<int> seen(kN * kK);
  for (std::int64_t n = 0; n < kN; ++n) {
    for (std::int64_t k = 0; k < kK; ++k) {
      const NibblePlace place = nibble_place(kK, n, k);
      ++seen[static_cast<std::size_t>(2 * place.byte + place.shift / 4)];
    }
  }
  EXPECT_THAT(seen, testing::Each(1));
}

// Of a 16 by 32 fragment lane 4 g + t holds the registers (row g, columns 4 t …), (g + 8, 4 t …),
// (g, 16 + 4 t …), (g + 8, 16 + 4 t …), four columns each.
TEST(Tile, NibblesOfALaneAreItsFragmentRegisters) {
  for (std::int64_t lane = 0; lane < 32; ++lane) {
    for (std::int64_t r = 0; r < 4; ++r) {
      for (std::int64_t i = 0; i < 4; ++i) {
        const std::int64_t row = lane / 4 + r % 2 * 8, column = lane % 4 * 4 + r / 2 * 16 + i;
        const std::int64_t byte = lane * 16 + r * 4 + i;
        EXPECT_EQ(nibble_place(32, row, column), (NibblePlace{.byte = byte, .shift = 0}));
        EXPECT_EQ(nibble_place(32, row + 16, column), (NibblePlace{.byte = byte, .shift = 4}));
      }
    }
  }
}

std::vector<std::int64_t> channels(ScaleOrder order) {
  std::vector<std::int64_t> out(32);
  for (std::int64_t n = 0; n < 32; ++n) out[static_cast<std::size_t>(scale_place(order, 64 + n) - 64)] = n;
  return out;
}

TEST(Scales, LieInTheOrderOfTheLanes) {
  EXPECT_THAT(channels(ScaleOrder::quads),
              ElementsAre(0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27, 4, 12, 20, 28, 5, 13, 21,
                          29, 6, 14, 22, 30, 7, 15, 23, 31));
  EXPECT_THAT(channels(ScaleOrder::pairs),
              ElementsAre(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15, 16, 24, 17, 25, 18, 26, 19,
                          27, 20, 28, 21, 29, 22, 30, 23, 31));
}

TEST(Scales, InTheOrderOfPairsAreReadOnlyWhereThatIsAskedFor) {
  const W4Weight weight = random_weight(kGrouped, kPost, 64, 256);
  PackedW4 out = packed(weight);
  const PackedW4 quads = out;
  for (std::int64_t n = 0; n < 64; ++n) {
    for (std::int64_t g = 0; g < 2; ++g) {
      const auto from = static_cast<std::size_t>(g * 64 + scale_place(ScaleOrder::quads, n));
      const auto to = static_cast<std::size_t>(g * 64 + scale_place(ScaleOrder::pairs, n));
      out.s2_scales[to] = quads.s2_scales[from];
      out.s2_zeros[to] = quads.s2_zeros[from];
    }
  }
  EXPECT_EQ(unpack(out.view(), kPost, ScaleOrder::pairs).value(), weight);
  const auto wrong = unpack(out.view(), kPost);
  EXPECT_FALSE(wrong && *wrong == weight);
}

TEST(Bytes, AreAddedModulo256) {
  EXPECT_EQ(zero_byte(8 * 16), 128);
  EXPECT_EQ(byte_value(15, 16, zero_byte(8 * 16)), 112);  // 240 + 128
  std::vector<int> values;
  for (const unsigned code : {0u, 7u, 8u, 15u}) values.push_back(byte_value(code, 16, zero_byte(8 * 16)));
  EXPECT_THAT(values, ElementsAre(-128, -16, 0, 112));
}

// Four codes in a word: a product of bytes does not carry, a sum of words would.
TEST(Bytes, OfAWordDoNotCarryIntoEachOther) {
  const std::uint32_t word = 0x0F080700, product = word * 16, zeros = 0x80808080;
  std::uint32_t lanes = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned code = word >> 8 * i & 255;
    EXPECT_EQ(product >> 8 * i & 255, code * 16);
    lanes |= static_cast<std::uint32_t>(static_cast<std::uint8_t>(byte_value(code, 16, 128))) << 8 * i;
  }
  EXPECT_NE(lanes, product + zeros);
  // 128 - zero is added where no byte overflows, and the sign put right afterwards.
  EXPECT_EQ(lanes, (product + (128 - 8 * 16) * 0x01010101u) ^ 0x80808080u);
}

TEST(Bytes, GiveEveryValueThatIsAnInt8) {
  for (int scale = 1; scale <= 127; ++scale) {
    for (int code = 0; code <= kMostCode && code * scale <= 255; ++code) {
      for (int value = -128; value <= 127; ++value) {
        const int zero = code * scale - value;
        ASSERT_EQ(byte_value(static_cast<unsigned>(code), static_cast<unsigned>(scale), zero_byte(zero)),
                  value);
      }
    }
  }
}

std::int64_t bytes(const PackedW4& p) {
  return static_cast<std::int64_t>(p.qweight.size() + p.s2_scales.size() + p.s2_zeros.size() +
                                   2 * (p.s1_scales.size() + p.s1_szeros.size()));
}

TEST(Budget, IsExact) {
  for (const std::int64_t k : {128, 512}) {
    EXPECT_EQ(bytes(packed(random_weight(kGrouped, kPre, 64, k))), packed_bytes(kGrouped, 64, k));
    EXPECT_EQ(bytes(packed(random_weight(kChannel, kPre, 64, k))), packed_bytes(kChannel, 64, k));
  }
  EXPECT_EQ(static_cast<double>(packed_bytes(kGrouped, 64, 4096)) / (64 * 4096), 0.51611328125);
  EXPECT_EQ(static_cast<double>(packed_bytes(kChannel, 64, 4096)) / (64 * 4096), 0.5009765625);
}

// Rows first … first + n of a weight, and columns.
W4Weight part(const W4Weight& from, std::int64_t first, std::int64_t n, std::int64_t first_k,
              std::int64_t k) {
  W4Weight out = W4Weight::sized(from.form, from.domain, n, k);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t row = first + i;
    std::copy_n(from.codes.begin() + row * from.k + first_k, k, out.codes.begin() + i * k);
    out.channel_scale[static_cast<std::size_t>(i)] = from.channel_scale[static_cast<std::size_t>(row)];
    const std::int64_t from_group = row * from.groups() + first_k / kGroup, to_group = i * out.groups();
    std::copy_n(from.group_scale.begin() + from_group, out.groups(), out.group_scale.begin() + to_group);
    std::copy_n(from.scaled_zero.begin() + from_group, out.groups(), out.scaled_zero.begin() + to_group);
    if (from.form == kChannel) {
      out.channel_zero[static_cast<std::size_t>(i)] = from.channel_zero[static_cast<std::size_t>(row)];
    }
  }
  return out;
}

template <class T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

// Packed weights one above the other: bytes follow bytes, and so do the rows' scales within each group.
PackedW4 stacked(const std::vector<PackedW4>& parts) {
  PackedW4 out;
  out.k = parts[0].k;
  for (const PackedW4& p : parts) {
    out.n += p.n;
    append(out.qweight, p.qweight);
    append(out.s1_scales, p.s1_scales);
    append(out.s1_szeros, p.s1_szeros);
  }
  for (std::int64_t g = 0; g < (parts[0].s2_scales.empty() ? 0 : out.k / kGroup); ++g) {
    for (const PackedW4& p : parts) {
      out.s2_scales.insert(out.s2_scales.end(), p.s2_scales.begin() + g * p.n,
                           p.s2_scales.begin() + (g + 1) * p.n);
      out.s2_zeros.insert(out.s2_zeros.end(), p.s2_zeros.begin() + g * p.n,
                          p.s2_zeros.begin() + (g + 1) * p.n);
    }
  }
  return out;
}

void expect_same_bytes(const PackedW4& a, const PackedW4& b) {
  EXPECT_EQ(a.qweight, b.qweight);
  EXPECT_EQ(a.s2_scales, b.s2_scales);
  EXPECT_EQ(a.s2_zeros, b.s2_zeros);
  const auto same = [](const std::vector<Half>& x, const std::vector<Half>& y) {
    return std::ranges::equal(x, y, {}, &Half::bits, &Half::bits);
  };
  EXPECT_TRUE(same(a.s1_scales, b.s1_scales));
  EXPECT_TRUE(same(a.s1_szeros, b.s1_szeros));
}

struct FormAndDomain {
  W4Form form;
  ZeroDomain domain;
};
constexpr FormAndDomain kEvery[] = {{kGrouped, kPre}, {kGrouped, kPost}, {kChannel, kPre}, {kChannel, kPost}};

// The packed parts of these rows, one above the other, are the whole packed.
void expect_parts_make(const W4Weight& whole, std::initializer_list<std::int64_t> rows) {
  std::vector<PackedW4> parts;
  std::int64_t first = 0;
  for (const std::int64_t n : rows) {
    parts.push_back(packed(part(whole, first, n, 0, whole.k)));
    first += n;
  }
  ASSERT_EQ(first, whole.n);
  expect_same_bytes(stacked(parts), packed(whole));
}

TEST(Parts, FusedQueryKeyAndValueAreTheSeparateOnes) {
  for (const auto& [form, domain] : kEvery) {
    expect_parts_make(random_weight(form, domain, 160, 256), {64, 32, 64});  // fewer key and value heads
  }
}

TEST(Parts, FusedGateAndUpAreTheSeparateOnes) {
  for (const auto& [form, domain] : kEvery) expect_parts_make(random_weight(form, domain, 192, 256), {96, 96});
}

TEST(Parts, ShardsOfRowsAndColumnsMakeTheWhole) {
  for (const auto& [form, domain] : kEvery) {
    const W4Weight whole = random_weight(form, domain, 64, 256);
    expect_parts_make(whole, {32, 32});
    const PackedW4 all = packed(whole);
    const std::array halves = {packed(part(whole, 0, 64, 0, 128)), packed(part(whole, 0, 64, 128, 128))};
    PackedW4 joined = halves[0];  // scales and zeros of channels are those of every shard of columns
    joined.qweight.clear();
    joined.s2_scales.clear();
    joined.s2_zeros.clear();
    const std::int64_t row_bytes = 128 / kTile * kTileBytes;  // of a shard's row of tiles
    for (std::int64_t tiles = 0; tiles < 64 / kTile; ++tiles) {
      for (const PackedW4& half : halves) {
        const auto first = half.qweight.begin() + tiles * row_bytes;
        joined.qweight.insert(joined.qweight.end(), first, first + row_bytes);
      }
    }
    for (const PackedW4& half : halves) {
      append(joined.s2_scales, half.s2_scales);
      append(joined.s2_zeros, half.s2_zeros);
    }
    expect_same_bytes(joined, all);
  }
}

TEST(Pack, RefusesWhatNoTileHolds) {
  for (const auto& weight : {random_weight(kGrouped, kPre, 48, 128), random_weight(kChannel, kPre, 32, 48)}) {
    const auto result = pack(weight);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::unsupported);
    EXPECT_THAT(result.error().what, HasSubstr("tiles of 32 by 32"));
  }
}

TEST(Pack, RefusesWeightsThatBreakARuleAndZerosBeyondFloat16) {
  W4Weight weight = random_weight(kGrouped, kPre, 32, 128);
  weight.group_scale[7] = 0;
  EXPECT_THAT(pack(weight).error().message(), HasSubstr("channel 7, group 0: rule group_scale"));
  weight = random_weight(kChannel, kPre, 32, 32);
  weight.channel_scale[9] = 65504;
  weight.channel_zero[9] = 2 * 65504.0f;
  EXPECT_THAT(pack(weight).error().message(), HasSubstr("channel 9: the zero 131008"));
}

TEST(Unpack, VerifiesWhatTheCallerSays) {
  const W4Weight weight = random_weight(kGrouped, kPost, 32, 256);
  const PackedW4 out = packed(weight);
  const auto fails = [](PackedW4View view, ZeroDomain domain) {
    return unpack(view, domain).error().message();
  };
  EXPECT_THAT(fails(out.view(), kPre), HasSubstr("rule zero"));
  PackedW4View view = out.view();
  view.k = 128;
  EXPECT_THAT(fails(view, kPost), HasSubstr("other sizes"));
  view = out.view();
  view.form = kChannel;
  EXPECT_THAT(fails(view, kPost), HasSubstr("other sizes"));
  view = out.view();
  view.n = 48;
  EXPECT_THAT(fails(view, kPost), HasSubstr("tiles of 32 by 32"));
  PackedW4 negative = out;
  negative.s2_scales[static_cast<std::size_t>(scale_place(ScaleOrder::quads, 5))] = -3;
  EXPECT_THAT(fails(negative.view(), kPost), HasSubstr("channel 5, group 0: rule group_scale: 253"));
  PackedW4 channels = packed(random_weight(kChannel, kPost, 32, 32));
  EXPECT_THAT(fails(channels.view(), kPre), HasSubstr("rule channel_zero"));
}

// Damage in any one group, or in any one channel's scale, is seen: nothing is sampled.
TEST(EveryGroup, IsCheckedWhenItIsPackedAndWhenItIsUnpacked) {
  constexpr std::int64_t kN = 64, kGroups = 3;
  const W4Weight weight = random_weight(kGrouped, kPost, kN, kGroups * kGroup);
  const PackedW4 good = packed(weight);
  for (std::size_t at = 0; at < weight.group_scale.size(); ++at) {
    W4Weight damaged = weight;
    damaged.group_scale[at] = 0;  // a scale is at least 1
    EXPECT_FALSE(check(damaged)) << at;
    EXPECT_FALSE(pack(damaged)) << at;
    PackedW4 stored = good;
    stored.s2_scales[at] = 0;
    EXPECT_FALSE(unpack(stored.view(), kPost)) << at;
  }
  for (std::size_t n = 0; n < kN; ++n) {
    PackedW4 stored = good;
    stored.s1_scales[n] = to_half(-1.0f);
    EXPECT_FALSE(unpack(stored.view(), kPost)) << n;
  }
}

// Every nibble counts up from its neighbour in a tile, in both directions of the layout.
TEST(EveryGroup, OfCountingCodesComesBack) {
  for (const auto& [form, n, k] : {std::tuple{kGrouped, 96, 256}, {kChannel, 64, 96}}) {
    W4Weight weight = random_weight(form, kPre, n, k);
    for (std::int64_t row = 0; row < n; ++row) {
      for (std::int64_t column = 0; column < k; ++column) {
        weight.codes[static_cast<std::size_t>(row * k + column)] = static_cast<std::uint8_t>((row + column) % 16);
      }
    }
    if (form == kGrouped) {
      weight.group_scale.assign(weight.group_scale.size(), 8);
      weight.scaled_zero.assign(weight.scaled_zero.size(), 8 * 8);
    }
    ASSERT_TRUE(check(weight)) << check(weight).error().message();
    const auto back = unpack(packed(weight).view(), kPre);
    ASSERT_TRUE(back) << back.error().message();
    EXPECT_EQ(*back, weight);
  }
}

}  // namespace
}  // namespace oasr::formats
