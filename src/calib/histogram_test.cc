#include "calib/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

namespace oasr::calib {
namespace {

Histogram histogram_of(const std::vector<float>& values) {
  Histogram histogram;
  histogram.add(values);
  return histogram;
}

// Values over many octaves, of both signs and zero, in an order that moves the window often.
std::vector<float> wild(std::size_t count, int least_exponent, int greatest_exponent) {
  std::mt19937_64 engine(7);
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = engine();
    const auto span = static_cast<std::uint64_t>(greatest_exponent - least_exponent + 1);
    const float mantissa = 1.0f + static_cast<float>(bits & 0x7FFFFF) / 0x1p23f;
    const float magnitude = std::ldexp(mantissa, least_exponent + static_cast<int>((bits >> 23) % span));
    values.push_back((bits >> 61) == 0 ? 0.0f : (bits >> 63) != 0 ? -magnitude : magnitude);
  }
  return values;
}

std::vector<float> scaled(std::vector<float> values, int exponent) {
  for (auto& value : values) value = std::ldexp(value, exponent);
  return values;
}

// The low end of the bin of x > 0 by its definition; 0 for the underflow.
double low_end(double x, double amax) {
  const int octave = std::ilogb(x);
  if (octave < std::ilogb(amax) - 23) return 0;
  return std::ldexp(std::floor(std::ldexp(x, 3 - octave)), octave - 3);
}

TEST(Histogram, CountsWhatItSaw) {
  const Histogram histogram = histogram_of({1.0f, -3.5f, 0.0f, -0.0f, 2.0f, 0x1p-149f});
  EXPECT_EQ(histogram.count(), 6u);
  EXPECT_EQ(histogram.zeros(), 2u);
  EXPECT_EQ(histogram.minimum(), -3.5);
  EXPECT_EQ(histogram.maximum(), 2.0);
  EXPECT_EQ(histogram.amax(), 3.5);
}

TEST(Histogram, NothingSeenIsZero) {
  Histogram histogram;
  histogram.add({});
  histogram.merge(Histogram());
  EXPECT_EQ(histogram, Histogram());
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.minimum(), 0);
  EXPECT_EQ(histogram.maximum(), 0);
  EXPECT_EQ(histogram.amax(), 0);
  EXPECT_TRUE(histogram.values().empty());
  EXPECT_TRUE(histogram.magnitudes().empty());
}

TEST(Histogram, BothZerosAreOne) {
  EXPECT_EQ(histogram_of({-0.0f}), histogram_of({0.0f}));
  EXPECT_FALSE(std::signbit(histogram_of({-0.0f, 0.0f}).minimum()));
  EXPECT_FALSE(std::signbit(histogram_of({-0.0f}).maximum()));
}

TEST(Histogram, BinsAreEighthsOfOctaves) {
  const auto bins = histogram_of({1.0f, 1.125f, 1.1249f, 1.999f, 4.0f}).values();
  ASSERT_EQ(bins.size(), 4u);
  EXPECT_EQ(bins[0].low, 1.0);
  EXPECT_EQ(bins[0].high, 1.125);
  EXPECT_EQ(bins[0].count, 2u);
  EXPECT_EQ(bins[1].low, 1.125);
  EXPECT_EQ(bins[1].high, 1.25);
  EXPECT_EQ(bins[2].low, 1.875);
  EXPECT_EQ(bins[2].high, 2.0);
  EXPECT_EQ(bins[3].low, 4.0);
  EXPECT_EQ(bins[3].high, 4.0) << "no bin is wider than the values seen";
}

TEST(Histogram, BinsHoldTheValuesBetweenTheirEnds) {
  const auto values = wild(20000, -40, 3);
  const Histogram histogram = histogram_of(values);
  std::map<double, std::uint64_t> signed_bins, bins;  // by the end nearer to zero
  for (const float x : values) {
    const double low = x == 0 ? -1.0 : low_end(std::fabs(x), histogram.amax());
    ++bins[low];
    ++signed_bins[x == 0 ? 0.0 : x < 0 ? -low - 1e-300 : low + 1e-300];
  }
  std::map<double, std::uint64_t> found;
  double last = -INFINITY;
  for (const auto& [low, high, count] : histogram.values()) {
    EXPECT_LE(last, low);
    EXPECT_TRUE(low < high || (low == 0 && count == histogram.zeros()));
    last = high;
    found[low == high ? 0.0 : low < 0 ? high - 1e-300 : low + 1e-300] = count;
  }
  EXPECT_EQ(found, signed_bins);
  found.clear();
  for (const auto& [low, high, count] : histogram.magnitudes()) found[low == high ? -1.0 : low] = count;
  EXPECT_EQ(found, bins);
}

TEST(Histogram, BinsAreNoWiderThanTheValues) {
  const auto bins = histogram_of({-3.1f, -3.01f, 5.3f, 5.2f}).values();
  ASSERT_EQ(bins.size(), 2u);
  EXPECT_EQ(bins[0].low, -3.1f);
  EXPECT_EQ(bins[1].high, 5.3f);
  const auto one_sided = histogram_of({-5.3f, -5.25f}).magnitudes();
  ASSERT_EQ(one_sided.size(), 1u);
  EXPECT_EQ(one_sided[0].low, 5.25f);
  EXPECT_EQ(one_sided[0].high, 5.3f);
}

TEST(Histogram, DoesNotDependOnTheOrderOfValues) {
  auto values = wild(3000, -60, 60);
  const Histogram histogram = histogram_of(values);
  std::mt19937_64 engine(1);
  for (int i = 0; i < 5; ++i) {
    std::shuffle(values.begin(), values.end(), engine);
    EXPECT_EQ(histogram_of(values), histogram);
  }
  std::sort(values.begin(), values.end());
  EXPECT_EQ(histogram_of(values), histogram);
}

TEST(Histogram, DoesNotDependOnSplittingAndMerging) {
  const auto values = wild(3000, -60, 60);
  const std::span all(values);
  Histogram by_value, merged, backwards;
  for (const float& value : values) by_value.add({&value, 1});
  std::vector<Histogram> parts;
  for (std::size_t at = 0; at < all.size(); at += 75) {
    parts.emplace_back();
    parts.back().add(all.subspan(at, 75));
    merged.merge(parts.back());
  }
  for (std::size_t i = parts.size(); i-- > 0;) backwards.merge(parts[i]);
  EXPECT_EQ(by_value, histogram_of(values));
  EXPECT_EQ(merged, histogram_of(values));
  EXPECT_EQ(backwards, histogram_of(values));
}

TEST(Histogram, MergesZerosAlone) {
  Histogram sum = histogram_of({1.0f, -0x1p-23f});
  sum.merge(histogram_of({0.0f, 0.0f}));
  EXPECT_EQ(sum, histogram_of({0.0f, 1.0f, 0.0f, -0x1p-23f}));
  Histogram zeros = histogram_of({0.0f, 0.0f});
  zeros.merge(histogram_of({1.0f, -0x1p-23f}));
  EXPECT_EQ(zeros, sum);
}

TEST(Histogram, TakesSmallCountsIn) {
  const auto values = wild(3000, -30, 4);
  const std::span all(values);
  ChannelHistogram one, other;
  one.add(all.first(1000));
  other.add(all.subspan(1000));
  Histogram sum;
  sum.merge(one);
  sum.merge(other);
  EXPECT_EQ(sum, histogram_of(values));
}

TEST(Histogram, ScalingIsWhatScaledValuesGive) {
  // Over more octaves than the window, and so that no scaled value leaves the range of exact floats.
  const auto values = wild(5000, -60, 2);
  for (const int exponent : {-60, -9, -1, 0, 1, 5, 100}) {
    EXPECT_EQ(histogram_of(values).scaled(exponent), histogram_of(scaled(values, exponent))) << exponent;
  }
  // Subnormal numbers are as good as others.
  const std::vector<float> tiny = {0x1p-149f, -0x3p-149f, 0x1.8p-130f, 0x1p-127f};
  EXPECT_EQ(histogram_of(tiny).scaled(40), histogram_of(scaled(tiny, 40)));
  EXPECT_EQ(histogram_of(scaled(tiny, 40)).scaled(-40), histogram_of(tiny));
}

TEST(Histogram, ScalingComesBack) {
  const Histogram histogram = histogram_of(wild(5000, -100, 127));
  for (const int exponent : {-256, 256}) {
    EXPECT_EQ(histogram.scaled(exponent).scaled(-exponent), histogram);
  }
  EXPECT_EQ(Histogram().scaled(3), Histogram());
}

TEST(Histogram, MergesWhatWasScaled) {
  const auto a = wild(2000, -40, 2), b = wild(3000, -50, 9);
  Histogram sum = histogram_of(a).scaled(3);
  sum.merge(histogram_of(b).scaled(-5));
  auto all = scaled(a, 3);
  const auto rest = scaled(b, -5);
  all.insert(all.end(), rest.begin(), rest.end());
  EXPECT_EQ(sum, histogram_of(all));
}

TEST(Histogram, IsRestoredFromItsNumbers) {
  for (const auto& values : {wild(500, -40, 3), {0.0f}, {}, {-2.5f}, {0x1p-149f, 0.0f}}) {
    const Histogram histogram = histogram_of(values);
    const auto again = Histogram::restore(histogram.cells(), histogram.minimum(), histogram.maximum());
    ASSERT_TRUE(again);
    EXPECT_EQ(*again, histogram);
  }
}

TEST(Histogram, NumbersThatNoValuesGiveAreRefused) {
  const auto restored = [](const Histogram& of, double minimum, double maximum) {
    return Histogram::restore(of.cells(), minimum, maximum).has_value();
  };
  const Histogram histogram = histogram_of({-3.0f, 0.0f, 7.0f});
  EXPECT_TRUE(restored(histogram, -3.0, 7.0));
  EXPECT_TRUE(restored(histogram, -3.1, 7.2)) << "in the same bins";
  EXPECT_FALSE(restored(histogram, -3.0, 7.5));
  EXPECT_FALSE(restored(histogram, -3.0, 14.0));
  EXPECT_FALSE(restored(histogram, -3.0, 6.0));
  EXPECT_FALSE(restored(histogram, -2.0, 7.0));
  EXPECT_FALSE(restored(histogram, 3.0, 7.0));
  EXPECT_FALSE(restored(histogram, 7.0, -3.0));
  EXPECT_FALSE(restored(histogram, -3.0, INFINITY));
  EXPECT_FALSE(restored(histogram, NAN, 7.0));
  EXPECT_FALSE(restored(Histogram(), 0, 1));
  EXPECT_FALSE(restored(histogram_of({5.1f, 5.2f}), 5.2, 5.1)) << "turned around within a bin";
  Histogram::Cells infinite{};
  infinite[Histogram::kCells - Histogram::kBinsPerOctave] = 1;  // where infinity, a power of two, would lie
  EXPECT_FALSE(Histogram::restore(infinite, INFINITY, INFINITY));
  auto cells = histogram_of({1.0f, 2.0f}).cells();
  for (auto& cell : cells) cell *= UINT64_MAX / 2 + 1;
  EXPECT_FALSE(Histogram::restore(cells, 1.0, 2.0)) << "more than 2^64 values";
}

}  // namespace
}  // namespace oasr::calib
