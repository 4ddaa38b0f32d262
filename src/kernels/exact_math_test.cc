// The scalar functions' error bounds, and the vector twins' bits (through the linear lanes).
#include "tensor/exact_math.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <limits>

#include "kernels/testing.h"

namespace oasr::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// |actual - exact| in units of the last place of the exact value's binade.
double ulps(float actual, double exact) {
  int exponent = 0;
  std::frexp(exact, &exponent);
  return std::abs(actual - exact) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

double exact_gelu(double x) { return 0.5 * x * std::erfc(-x * M_SQRT1_2); }

// Calls f with every finite float16 and with `count` floats spread evenly over the bit patterns of
// [-limit, limit].
template <class F>
void for_inputs(float limit, std::uint32_t count, F f) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float x = to_float(Half{static_cast<std::uint16_t>(bits)});
    if (std::isfinite(x)) f(x);
  }
  const std::uint32_t last = std::bit_cast<std::uint32_t>(limit);
  for (std::uint32_t i = 0; i < count / 2; ++i) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(std::uint64_t{last} * i / (count / 2)));
    f(x);
    f(-x);
  }
}

TEST(ExactExp, IsWithinItsBound) {
  double worst = 0;
  for_inputs(89.0f, 10'000'000, [&](float x) {
    const double exact = std::exp(static_cast<double>(x));
    const float y = exact::exp(x);
    if (exact < FLT_MIN) {
      // Flushed; at the limit itself the smallest normal number may stand for it.
      if (y != 0.0f && ulps(y, FLT_MIN) > 1) ADD_FAILURE() << x;
    } else if (exact > FLT_MAX) {
      if (y != kInf) ADD_FAILURE() << x;
    } else if (x > -87.33654f) {
      worst = std::max(worst, ulps(y, exact));
    }
  });
  RecordProperty("worst_ulp", std::to_string(worst));
  std::printf("exp: worst error %.3f ulp\n", worst);
  EXPECT_LT(worst, 1.0);
}

TEST(ExactExp, KeepsTheLimits) {
  EXPECT_EQ(exact::exp(0.0f), 1.0f);
  EXPECT_EQ(exact::exp(-0.0f), 1.0f);
  EXPECT_EQ(exact::exp(-kInf), 0.0f);
  EXPECT_EQ(exact::exp(-1e30f), 0.0f);
  EXPECT_EQ(exact::exp(kInf), kInf);
  EXPECT_EQ(exact::exp(1e30f), kInf);
  for (const std::uint32_t bits : {0x7FC00000u, 0x7F800001u, 0xFFC12345u, 0x7FFFFFFFu, 0x7FC00001u}) {
    EXPECT_TRUE(std::isnan(exact::exp(std::bit_cast<float>(bits))));
    EXPECT_TRUE(std::isnan(exact::gelu(std::bit_cast<float>(bits))));
  }
}

TEST(ExactGelu, IsWithinItsBound) {
  double near = 0, negative = 0, absolute = 0;
  for_inputs(20.0f, 10'000'000, [&](float x) {
    const double exact = exact_gelu(x);
    const float y = exact::gelu(x);
    absolute = std::max(absolute, std::abs(y - exact) / std::max(1.0, std::abs(double{x})));
    if (x > 0 && x > 1e-30f) near = std::max(near, ulps(y, exact));
    if (x < -1e-30f && x > -3.0f) negative = std::max(negative, ulps(y, exact));
  });
  std::printf("gelu: worst error %.3f ulp for x > 0, %.3f ulp for -3 < x < 0, %.3g absolute\n", near,
              negative, absolute);
  EXPECT_LT(near, 2.0);
  EXPECT_LT(negative, 6.0);
}

TEST(ExactGelu, KeepsTheLimits) {
  EXPECT_EQ(exact::gelu(0.0f), 0.0f);
  EXPECT_TRUE(std::signbit(exact::gelu(-0.0f)));
  EXPECT_EQ(exact::gelu(kInf), kInf);
  EXPECT_EQ(exact::gelu(1e30f), 1e30f);
  EXPECT_EQ(exact::gelu(-kInf), 0.0f);
  EXPECT_EQ(exact::gelu(-1e30f), 0.0f);
}

TEST(ExactGelu, HasTheSameBitsOnEveryLane) {
  std::vector<float> inputs;
  for_inputs(3e38f, 1'000'000, [&](float x) { inputs.push_back(x); });
  inputs.insert(inputs.end(), {kInf, -kInf, std::nanf(""), FLT_MIN, FLT_MAX, -FLT_MAX, 14.0f, -14.0f});
  const auto n = static_cast<std::int64_t>(inputs.size());
  const PackedWeight weight = pack_rows(inputs, n, 1, DType::f32);  // 1 · input + 0
  std::vector<float> expected(inputs.size()), y(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) expected[i] = exact::gelu(inputs[i] + 0.0f);
  const float one = 1.0f;
  for (const LinearLane& lane : runnable(linear_lanes())) {
    lane.run({.x = &one, .ldx = 1, .m = 1, .weight = &weight, .activation = Activation::gelu,
              .y = y.data(), .ldy = n},
             0, 1, 0, (n + 31) / 32);
    EXPECT_EQ(first_difference(y, expected), -1) << lane.name;
  }
}

}  // namespace
}  // namespace oasr::kernels
