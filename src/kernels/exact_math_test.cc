// The scalar functions' error bounds, and the vector twins' bits (through the linear lanes).
#include "tensor/exact_math.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <limits>

#include "kernels/activate/op.h"
#include "kernels/lane_report.h"
#include "kernels/testing.h"

namespace oasr::kernels {
namespace {

[[maybe_unused]] const auto* const kLinearLanes = report_lanes("linear", linear_lanes);
[[maybe_unused]] const auto* const kActivateLanes = report_lanes("activate", activate_lanes);

constexpr float kInf = std::numeric_limits<float>::infinity();

// |actual - exact| in units of the last place of the exact value's binade.
double ulps(float actual, double exact) {
  int exponent = 0;
  std::frexp(exact, &exponent);
  return std::abs(actual - exact) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

// The largest negative number whose exponential is not flushed to zero.
constexpr float kExpLeast = -0x1.5d589ep6f;

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
    EXPECT_TRUE(std::isnan(exact::swish(std::bit_cast<float>(bits))));
    EXPECT_TRUE(std::isnan(exact::sigmoid(std::bit_cast<float>(bits))));
    EXPECT_TRUE(std::isnan(exact::tanh(std::bit_cast<float>(bits))));
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
  EXPECT_LT(near, 1.6);
  EXPECT_LT(negative, 4.5);
  EXPECT_LT(absolute, 7e-8);
}

TEST(ExactGelu, KeepsTheLimits) {
  EXPECT_EQ(exact::gelu(0.0f), 0.0f);
  EXPECT_TRUE(std::signbit(exact::gelu(-0.0f)));
  EXPECT_EQ(exact::gelu(kInf), kInf);
  EXPECT_EQ(exact::gelu(1e30f), 1e30f);
  EXPECT_EQ(exact::gelu(-kInf), 0.0f);
  EXPECT_EQ(exact::gelu(-1e30f), 0.0f);
  // Where the tail leaves the normal numbers.
  for (float x = -12.0f; x > -14.5f; x = std::nextafter(x, -kInf)) {
    const float y = exact::gelu(x);
    if (!(y <= 0.0f && y > -1e-31f)) ADD_FAILURE() << x;
  }
  EXPECT_LT(exact::gelu(-12.75f), 0.0f);
}

TEST(ExactSwish, IsWithinItsBound) {
  double worst = 0, flushed = 0;
  for_inputs(200.0f, 10'000'000, [&](float x) {
    const double exact = x / (1.0 + std::exp(-static_cast<double>(x)));
    const float y = exact::swish(x);
    if (x >= kExpLeast) {
      worst = std::max(worst, ulps(y, exact));
    } else {
      flushed = std::max(flushed, std::abs(y - exact));
    }
  });
  std::printf("swish: worst error %.3f ulp, %.3g absolute where it is flushed\n", worst, flushed);
  EXPECT_LT(worst, 3.5);
  EXPECT_LT(flushed, 0x1p-119);
}

TEST(ExactSwish, KeepsTheLimits) {
  EXPECT_EQ(exact::swish(0.0f), 0.0f);
  EXPECT_EQ(exact::swish(kInf), kInf);
  EXPECT_EQ(exact::swish(FLT_MAX), FLT_MAX);
  EXPECT_EQ(exact::swish(-kInf), 0.0f);
  EXPECT_EQ(exact::swish(-FLT_MAX), 0.0f);
  EXPECT_EQ(exact::swish(-88.0f), 0.0f);
  EXPECT_NE(exact::swish(kExpLeast), 0.0f);
}

TEST(ExactSigmoid, IsWithinItsBound) {
  double worst = 0, flushed = 0;
  for_inputs(200.0f, 10'000'000, [&](float x) {
    const double exact = 1.0 / (1.0 + std::exp(-static_cast<double>(x)));
    const float y = exact::sigmoid(x);
    if (x >= kExpLeast) {
      worst = std::max(worst, ulps(y, exact));
    } else {
      flushed = std::max(flushed, std::abs(y - exact));
    }
  });
  std::printf("sigmoid: worst error %.3f ulp, %.3g absolute where it is flushed\n", worst, flushed);
  EXPECT_LT(worst, 2.5);
  EXPECT_LT(flushed, 0x1p-125);
}

TEST(ExactSigmoid, KeepsTheLimitsAndNeverLeavesThem) {
  EXPECT_EQ(exact::sigmoid(0.0f), 0.5f);
  EXPECT_EQ(exact::sigmoid(-0.0f), 0.5f);
  for (const float x : {100.0f, 1e30f, FLT_MAX, kInf}) {
    EXPECT_EQ(exact::sigmoid(x), 1.0f);
    EXPECT_EQ(exact::sigmoid(-x), 0.0f);
  }
  for_inputs(200.0f, 1'000'000, [&](float x) {
    const float y = exact::sigmoid(x);
    if (!(y >= 0.0f && y <= 1.0f)) ADD_FAILURE() << x;
  });
}

TEST(ExactTanh, IsWithinItsBound) {
  double worst = 0;
  for_inputs(20.0f, 10'000'000, [&](float x) {
    worst = std::max(worst, ulps(exact::tanh(x), std::tanh(static_cast<double>(x))));
  });
  std::printf("tanh: worst error %.3f ulp\n", worst);
  EXPECT_LT(worst, 2.7);
}

TEST(ExactTanh, KeepsTheLimitsAndNeverLeavesThem) {
  EXPECT_EQ(exact::tanh(0.0f), 0.0f);
  EXPECT_EQ(exact::tanh(-0.0f), 0.0f);
  for (const float x : {10.0f, 1e30f, kInf}) {
    EXPECT_EQ(exact::tanh(x), 1.0f);
    EXPECT_EQ(exact::tanh(-x), -1.0f);
  }
  for_inputs(20.0f, 1'000'000, [&](float x) {
    const float y = exact::tanh(x);
    if (!(y >= -1.0f && y <= 1.0f)) ADD_FAILURE() << x;
  });
}

TEST(Activations, HaveTheSameBitsOnEveryLane) {
  std::vector<float> inputs;
  for_inputs(3e38f, 1'000'000, [&](float x) { inputs.push_back(x); });
  inputs.insert(inputs.end(), {kInf, -kInf, std::nanf(""), FLT_MIN, FLT_MAX, -FLT_MAX, 14.0f, -14.0f});
  const auto n = static_cast<std::int64_t>(inputs.size());
  const PackedWeight weight = pack_rows(inputs, n, 1, DType::f32);  // 1 · input + 0
  std::vector<float> expected(inputs.size()), y(inputs.size());
  const float one = 1.0f;
  for (const Activation activation : {Activation::none, Activation::gelu, Activation::swish, Activation::relu,
                                      Activation::tanh}) {
    for (std::size_t i = 0; i < inputs.size(); ++i) expected[i] = activate(activation, inputs[i] + 0.0f);
    for (const LinearLane& lane : runnable(linear_lanes())) {
      lane.run({.x = &one, .ldx = 1, .m = 1, .weight = &weight, .activation = activation, .y = y.data(), .ldy = n},
               0, 1, 0, (n + 31) / 32);
      EXPECT_EQ(first_difference(y, expected), -1) << lane.name << " activation " << static_cast<int>(activation);
    }
  }
}

TEST(Activations, OfAGateHaveTheSameBitsOnEveryLane) {
  std::vector<float> inputs;
  for_inputs(3e38f, 1'000'000, [&](float x) { inputs.push_back(x); });
  const auto d = static_cast<std::int64_t>(inputs.size());
  inputs.insert(inputs.begin(), inputs.size(), 1.0f);  // 1 · sigmoid(input)
  std::vector<float> expected(static_cast<std::size_t>(d)), y(expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = exact::sigmoid(inputs[expected.size() + i]);
  for (const ActivateLane& lane : runnable(activate_lanes())) {
    lane.glu({.x = inputs.data(), .ldx = 2 * d, .m = 1, .d = d, .y = y.data(), .ldy = d}, 0, 1);
    EXPECT_EQ(first_difference(y, expected), -1) << lane.name;
  }
}

TEST(Activations, ServeTheFunctionsOfTheirNames) {
  for (const float x : {-3.0f, -0.5f, 0.25f, 2.0f}) {
    EXPECT_EQ(activate(Activation::none, x), x);
    EXPECT_EQ(activate(Activation::gelu, x), exact::gelu(x));
    EXPECT_EQ(activate(Activation::swish, x), exact::swish(x));
    EXPECT_EQ(activate(Activation::relu, x), std::max(x, 0.0f));
    EXPECT_EQ(activate(Activation::tanh, x), exact::tanh(x));
  }
  EXPECT_TRUE(std::isnan(activate(Activation::relu, std::nanf(""))));
}

}  // namespace
}  // namespace oasr::kernels
