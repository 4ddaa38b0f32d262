#include "decode/log_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace oasr::decode {
namespace {

// The header's bounds, and one rounding of libm's own result.
TEST(LogMath, StaysWithinItsBoundsOfTheRealFunctions) {
  for (int i = 0; i <= 200000; ++i) {
    const double x = -i * 0.0034;
    const double exact = std::exp(x);
    ASSERT_NEAR(exp_of_negative(x), exact, exact * 1.3e-15) << x;
  }
  for (int i = 0; i <= 100000; ++i) {
    const double y = i / 100000.0;
    ASSERT_NEAR(log_of_one_plus(y), std::log1p(y), 4.2e-16) << y;
  }
  for (int n = -60; n <= 60; ++n) {
    for (int i = 0; i < 1000; ++i) {
      const double x = std::ldexp(1 + i / 1000.0, n), exact = std::log(x);
      ASSERT_NEAR(log_of(x), exact, 4e-16 + std::abs(n) * 0x1p-52 + std::abs(exact) * 0x1p-53) << x;
    }
  }
}

TEST(LogMath, LeavesWhatHasNoLogarithm) {
  EXPECT_EQ(log_of(1.0), 0);
  EXPECT_EQ(log_of(std::numeric_limits<double>::infinity()), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(log_of(std::nan(""))));
}

TEST(LogMath, AddsProbabilitiesInTheLogDomain) {
  EXPECT_EQ(log_add(kLogZero, kLogZero), kLogZero);
  EXPECT_EQ(log_add(-3.5, kLogZero), -3.5);
  EXPECT_EQ(log_add(kLogZero, -3.5), -3.5);
  EXPECT_EQ(log_add(-1000.0, -1.25), -1.25);
  EXPECT_NEAR(log_add(std::log(0.25), std::log(0.5)), std::log(0.75), 1e-15);
  EXPECT_EQ(log_add(-7.25, -6.5), log_add(-6.5, -7.25));
  EXPECT_EQ(exp_of_negative(0.0), 1);
  EXPECT_EQ(exp_of_negative(-701.0), 0);
}

}  // namespace
}  // namespace oasr::decode
