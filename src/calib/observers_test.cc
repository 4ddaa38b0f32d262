#include "calib/observers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>

#include "kernels/quantize/op.h"

namespace oasr::calib {
namespace {

using ::testing::HasSubstr;

Histogram of(const std::vector<float>& values) {
  Histogram histogram;
  histogram.add(values);
  return histogram;
}

float range(std::string_view observer, const std::vector<float>& values) {
  return find_observer(observer).value()->amax(of(values));
}

// The definition of the error, one value at a time.
double squared_error(double x, double amax) {
  const double step = amax / 127;
  const double error = x - step * std::clamp(std::nearbyint(x / step), -127.0, 127.0);
  return error * error;
}
double mean_squared_error(const std::vector<float>& values, double amax) {
  double sum = 0;
  for (const float x : values) sum += squared_error(x, amax);
  return sum / static_cast<double>(values.size());
}

// E[x²] of values that are uniform within each bin.
double expected_square(const Histogram& histogram) {
  double sum = 0;
  for (const auto& [low, high, count] : histogram.magnitudes()) {
    sum += static_cast<double>(count) * (low * low + low * high + high * high) / 3;
  }
  return sum / static_cast<double>(histogram.count());
}
double expected_squared_error(const Histogram& histogram, float amax) {
  return examine(histogram, amax).relative_error * expected_square(histogram);
}

constexpr std::size_t kSamples = 100'000;

struct Distribution {
  std::vector<float> values;
  double greatest_density;  // of x, away from 0
};

std::map<std::string, Distribution> distributions() {
  std::mt19937_64 engine(3);
  const auto uniform = [&] { return (static_cast<double>(engine() >> 11) + 0.5) * 0x1p-53; };
  const auto draw = [&](const std::function<double()>& make) {
    std::vector<float> values(kSamples);
    for (auto& value : values) value = static_cast<float>(make());
    return values;
  };
  const auto gaussian = [&] {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * M_PI * uniform());
  };
  std::map<std::string, Distribution> all;
  all["gaussian"] = {draw(gaussian), 0.3990};
  all["laplace"] = {draw([&] {
                      const double u = uniform() - 0.5;
                      return (u < 0 ? 3 : -3) * std::log(1 - 2 * std::fabs(u));
                    }),
                    1.0 / 6};
  all["relu"] = {draw([&] { return std::max(gaussian() + 0.5, 0.0); }), 0.3990};
  all["outlier"] = all["gaussian"];
  all["outlier"].values[777] = -61.0f;
  return all;
}

// How far the expected error of the histogram can be from that of the values it was made of. Both sum the
// counts of the same bins; within a bin the values are spread otherwise than uniformly.
//  - Rounding: (x - Q(x))² of a density d is ∫ s²/12 d plus ∫ G |d'|, where G, the integral of
//    (x - Q(x))² - s²/12, is at most s³ / (36 √3). Histogram and density each rise to the greatest density
//    and fall again on either side: a variation of 2 d, both of them, so 4 d s³ / (36 √3).
//  - Drawing the values: an error in [0, s²/4] has a deviation of at most s²/8; five of their mean.
//  - Clipping: the error of a value in a bin is between those of the ends of the bin.
double tolerance(const Distribution& from, const Histogram& histogram, double amax) {
  const double step = amax / 127, n = static_cast<double>(from.values.size());
  double clipping = 0;
  for (const auto& [low, high, count] : histogram.magnitudes()) {
    const double near = std::max(low - amax, 0.0), far = std::max(high - amax, 0.0);
    clipping += static_cast<double>(count) * (far * far - near * near);
  }
  return 4 * from.greatest_density * std::pow(step, 3) / (36 * std::sqrt(3.0)) +
         5 * step * step / 8 / std::sqrt(n) + clipping / n;
}

TEST(Observers, ExpectedErrorIsNearThatOfTheValues) {
  for (const auto& [name, from] : distributions()) {
    const Histogram histogram = of(from.values);
    for (int percent = 100; percent >= 20; percent -= 4) {
      const auto amax = static_cast<float>(histogram.amax() * percent / 100);
      EXPECT_NEAR(expected_squared_error(histogram, amax), mean_squared_error(from.values, amax),
                  tolerance(from, histogram, amax))
          << name << " " << percent;
    }
  }
}

TEST(Observers, ExpectedErrorOfUniformBinsIsExact) {
  // Evenly spaced values in each bin. The midpoint rule over n pieces of a width w misses a mean of f by at
  // most w / (4 n) max |f'|, and |f'| = 2 |x - Q(x)| is at most the step or twice the clipped part.
  constexpr int kPieces = 4096;
  std::vector<float> values;
  for (int piece = 0; piece < kPieces; ++piece) {
    for (const double low : {0.0625, 0.5, 1.5, 7.5, 14.0}) {
      const double width = std::ldexp(0.125, std::ilogb(low));
      values.push_back(static_cast<float>(low + (piece + 0.5) / kPieces * width));
    }
  }
  const Histogram histogram = of(values);
  ASSERT_EQ(histogram.magnitudes().size(), 5u);
  for (const float amax : {20.0f, 15.0f, 9.0f, 7.55f, 3.0f, 0.02f}) {
    const double slope = std::max(amax / 127.0, 2 * (15.0 - amax));
    // The ends of the first and the last bin are those of the values, half a piece further in.
    EXPECT_NEAR(expected_squared_error(histogram, amax), mean_squared_error(values, amax),
                2 * 1.0 / kPieces * slope)
        << amax;
  }
}

TEST(Observers, MeanSquaredErrorIsTheLeastOfAllRanges) {
  for (const auto& [name, from] : distributions()) {
    const Histogram histogram = of(from.values);
    const float chosen = find_observer("mse").value()->amax(histogram);
    const double error = mean_squared_error(from.values, chosen);
    const double own = tolerance(from, histogram, chosen);
    for (int percent = 100; percent >= 20; --percent) {
      const double amax = histogram.amax() * percent / 100;
      EXPECT_LE(error, mean_squared_error(from.values, amax) + own + tolerance(from, histogram, amax))
          << name << " " << percent;
    }
  }
}

TEST(Observers, MeanSquaredErrorTakesTheGreatestOfTheBest) {
  for (const auto& [name, from] : distributions()) {
    const Histogram histogram = of(from.values);
    const float chosen = find_observer("mse").value()->amax(histogram);
    const double error = examine(histogram, chosen).relative_error;
    for (int percent = 100; percent >= 20; --percent) {
      const auto amax = static_cast<float>(histogram.amax() * percent / 100);
      const double other = examine(histogram, amax).relative_error;
      EXPECT_TRUE(amax > chosen ? error < other : error <= other) << name << " " << percent;
    }
  }
}

TEST(Observers, MeanSquaredErrorClipsWhereItPays) {
  const auto all = distributions();
  // 100 000 laplacian values reach 12 scales, and all but one in 1800 are within 7.5: the step is worth more.
  const auto& laplace = all.at("laplace").values;
  EXPECT_LT(range("mse", laplace), 0.9 * range("minmax", laplace));
  // Clipping a value of 60 to 54 costs 36 / n; a tenth of the range saves 0.19 · (60 / 127)² / 12 at the
  // most.
  std::vector<float> few = {60.0f, 1.0f, -1.0f, 0.5f};
  EXPECT_EQ(range("mse", few), 60.0f);
}

TEST(Observers, PercentileLeavesOneInTenThousand) {
  std::vector<float> values;
  for (int i = 1; i <= 100'000; ++i) values.push_back(static_cast<float>(i % 2 == 0 ? i : -i));
  // Uniform within each bin: exact, but for the half value at the ends of the bins.
  EXPECT_NEAR(range("percentile", values), 99'990.0f, 1.0f);
  EXPECT_NEAR(examine(of(values), range("percentile", values)).clipped, 1e-4, 1e-5);
  // Zeros are values.
  values.resize(400'000, 0.0f);
  EXPECT_NEAR(range("percentile", values), 99'960.0f, 1.0f);
}

TEST(Observers, PercentileCountsFromTheGreatest) {
  // Ten of 100 000 may lie beyond: eight above 200 and two of the eight in [96, 104].
  std::vector<float> values(100'000, 1.0f);
  for (std::size_t i = 0; i < 8; ++i) values[i] = 200.0f, values[i + 8] = 100.0f;
  EXPECT_EQ(range("percentile", values), 104.0f - 8.0f * 2 / 8);
}

TEST(Observers, PercentileIgnoresOneOutlier) {
  std::vector<float> values = distributions().at("gaussian").values;
  const float before = range("percentile", values);
  values[5] = 1e6f;
  // One more value beyond: of the ten that are clipped, the least moves by less than a bin.
  EXPECT_NEAR(range("percentile", values), before, before / 8);
  EXPECT_EQ(range("minmax", values), 1e6f);
}

// TensorRT's search as its definition says, over the same linear histogram.
double divergence(const std::vector<double>& histogram, std::size_t kept) {
  std::vector<double> p(histogram.begin(), histogram.begin() + static_cast<std::ptrdiff_t>(kept));
  std::vector<double> q(kept);
  for (std::size_t i = kept; i < histogram.size(); ++i) p.back() += histogram[i];
  for (std::size_t level = 0; level < 128; ++level) {
    const std::size_t begin = level * kept / 128, end = (level + 1) * kept / 128;
    double mass = 0, filled = 0;
    for (std::size_t i = begin; i < end; ++i) mass += histogram[i], filled += p[i] > 0;
    for (std::size_t i = begin; i < end; ++i) q[i] = p[i] > 0 ? mass / filled : 0;
  }
  double p_sum = 0, q_sum = 0, sum = 0;
  for (std::size_t i = 0; i < kept; ++i) p_sum += p[i], q_sum += q[i];
  for (std::size_t i = 0; i < kept; ++i) {
    if (p[i] > 0) sum += p[i] / p_sum * std::log(p[i] / p_sum / (q[i] / q_sum));
  }
  return sum;
}

TEST(Observers, EntropyIsTheLeastDivergence) {
  auto all = distributions();
  for (const std::size_t few : {10, 50, 250, 1000}) {  // with a long tail and empty bins
    auto& values = all[std::to_string(few)].values;
    values.assign(all["laplace"].values.begin(),
                  all["laplace"].values.begin() + static_cast<std::ptrdiff_t>(few));
    for (auto& value : values) value *= std::fabs(value);
  }
  for (const auto& [name, from] : all) {
    const Histogram histogram = of(from.values);
    const double width = histogram.amax() / 2048;
    std::vector<double> linear(2048);
    for (const auto& [low, high, count] : histogram.magnitudes()) {
      for (std::size_t i = 0; high > 0 && i < linear.size(); ++i) {
        const double begin = std::max(low, static_cast<double>(i) * width);
        const double end = std::min(high, static_cast<double>(i + 1) * width);
        if (low < high) linear[i] += static_cast<double>(count) * std::max(end - begin, 0.0) / (high - low);
      }
    }
    std::size_t best = 2048;
    for (std::size_t kept = 2048; kept >= 128; --kept) {
      if (divergence(linear, kept) < divergence(linear, best)) best = kept;
    }
    EXPECT_EQ(find_observer("entropy").value()->amax(histogram),
              static_cast<float>(static_cast<double>(best) * width))
        << name;
  }
}

TEST(Observers, EntropyClipsALongTail) {
  const auto laplace = distributions().at("laplace").values;
  EXPECT_LT(range("entropy", laplace), range("minmax", laplace));
}

class EveryObserver : public ::testing::TestWithParam<Observer> {};
INSTANTIATE_TEST_SUITE_P(Table, EveryObserver, ::testing::ValuesIn(observers().begin(), observers().end()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(EveryObserver, IsFoundByItsName) {
  EXPECT_EQ(find_observer(GetParam().name).value()->amax, GetParam().amax);
  EXPECT_FALSE(GetParam().what.empty());
}

TEST_P(EveryObserver, GivesAScaleWhateverWasSeen) {
  for (const auto& values : {std::vector<float>{}, {0.0f, -0.0f}, {0x1p-149f}, {1e-12f, -1e-9f}}) {
    EXPECT_EQ(GetParam().amax(of(values)), kernels::kLeastAmax);
  }
  EXPECT_EQ(GetParam().amax(of({3e38f}).scaled(20)), std::numeric_limits<float>::max());
}

TEST_P(EveryObserver, KeepsAConstantAsItIs) {
  for (const float constant : {5.3f, -5.3f, 1e-3f, 2.0f}) {
    const std::vector<float> values(20'000, constant);
    EXPECT_EQ(GetParam().amax(of(values)), std::fabs(constant));
    EXPECT_EQ(examine(of(values), std::fabs(constant)).clipped, 0);
    EXPECT_NEAR(examine(of(values), std::fabs(constant)).relative_error, 0, 1e-30);
  }
}

TEST_P(EveryObserver, IsWithinWhatWasSeen) {
  for (const auto& [name, from] : distributions()) {
    const float amax = GetParam().amax(of(from.values));
    EXPECT_GT(amax, 0.05 * of(from.values).amax()) << name;
    EXPECT_LE(amax, of(from.values).amax()) << name;
  }
}

TEST_P(EveryObserver, ScalesWithItsInput) {
  for (const auto& [name, from] : distributions()) {
    const Histogram histogram = of(from.values);
    EXPECT_EQ(GetParam().amax(histogram.scaled(-9)), std::ldexp(GetParam().amax(histogram), -9)) << name;
  }
}

TEST(Examine, CountsWhatIsClipped) {
  const Histogram histogram = of({1.0f, 1.0f, -2.0f, 8.0f});
  EXPECT_EQ(examine(histogram, 8.0f).clipped, 0);
  EXPECT_EQ(examine(histogram, 4.0f).clipped, 0.25);
  EXPECT_EQ(examine(Histogram(), 1.0f).clipped, 0);
  EXPECT_EQ(examine(of({0.0f}), 1.0f).relative_error, 0);
  // Of 8 ± 0, kept as 4: half of it is lost, a quarter of its square.
  EXPECT_NEAR(examine(of({8.0f}), 4.0f).relative_error, 0.25, 1e-12);
}

TEST(FindObserver, NamesTheNearest) {
  const auto found = find_observer("minmx");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(found.error().message(),
            "observer: 'minmx' is not an observer (did you mean minmax? observers: minmax, mse, percentile, "
            "entropy)");
  EXPECT_TRUE(find_observer(kDefaultObserver));
}

}  // namespace
}  // namespace oasr::calib
