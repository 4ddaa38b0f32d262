#include "calib/smoothing.h"

#include <gmock/gmock.h>

#include <cmath>

namespace oasr::calib {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

TEST(Smoothing, IsTheNearestPowerOfTwoToTheFormula) {
  // sqrt(64 / 1) = 8, sqrt(1 / 16) = 1/4, sqrt(5 / 0.6) = 2.887: nearer to 4 than to 2 in the logarithm.
  const Smoothing s = smooth({.input = {64, 1, 5}, .weight = {1, 16, 0.6f}, .absorber = {}}, 0.5);
  EXPECT_THAT(s.exponents, ElementsAre(3, -2, 2));
  EXPECT_EQ(s.moved, 3);
  EXPECT_EQ(s.clamped, 0);
  EXPECT_EQ(s.scale(0), 8.0f);
  EXPECT_EQ(s.inverse(0), 0.125f);
}

TEST(Smoothing, AlphaMovesTheBurden) {
  const SmoothingInput input{.input = {256}, .weight = {0.25f}, .absorber = {}};
  EXPECT_THAT(smooth(input, 0).exponents, ElementsAre(2));    // 1 / 0.25
  EXPECT_THAT(smooth(input, 1).exponents, ElementsAre(8));    // 256
  EXPECT_THAT(smooth(input, 0.5).exponents, ElementsAre(5));  // 16 · 2
}

TEST(Smoothing, KeepsAChannelThatWasNeverActive) {
  const Smoothing s = smooth({.input = {0, 100}, .weight = {1e-3f, 1}, .absorber = {1, 1}}, 0.5);
  EXPECT_EQ(s.exponents[0], 0);
  EXPECT_EQ(s.idle, 1);
  EXPECT_NE(s.exponents[1], 0);
}

TEST(Smoothing, AColumnOfZerosHasAFiniteScale) {
  const Smoothing s = smooth({.input = {1, 1}, .weight = {0, 1}, .absorber = {}}, 0.5);
  EXPECT_EQ(s.exponents[0], 8);  // sqrt(1 / 1e-5) = 316, nearest 256
  EXPECT_EQ(s.exponents[1], 0);
}

TEST(Smoothing, ALayerOfZerosStaysAsItIs) {
  const Smoothing s = smooth({.input = {1, 5}, .weight = {0, 0}, .absorber = {1, 1}}, 0.5);
  EXPECT_THAT(s.exponents, Each(0));
  EXPECT_TRUE(s.identity());
}

// What float16 can not hold would be infinite in a model that is served in it.
TEST(Smoothing, KeepsFoldedValuesInsideFloat16) {
  for (const float x : {1e-8f, 1e-3f, 1.0f, 1e4f, 1e30f}) {
    for (const float w : {1e-8f, 1e-3f, 1.0f, 5e4f}) {
      for (const float a : {7e-5f, 1e-3f, 1.0f, 5e4f}) {
        const Smoothing s = smooth({.input = {x}, .weight = {w}, .absorber = {a}}, 0.5);
        EXPECT_LE(w * s.scale(0), 60000) << x << " " << w << " " << a;
        EXPECT_LE(a * s.inverse(0), 60000) << x << " " << w << " " << a;
        EXPECT_GE(a * s.inverse(0), std::ldexp(1.0f, -14)) << x << " " << w << " " << a;
      }
    }
  }
  EXPECT_EQ(smooth({.input = {1e30f}, .weight = {1e-3f}, .absorber = {1}}, 0.5).clamped, 1);
}

TEST(Smoothing, AValueThatIsOutsideAlreadyIsNotMovedFurther) {
  const Smoothing s = smooth({.input = {1e-6f}, .weight = {1}, .absorber = {1e6f}}, 0.5);
  EXPECT_GE(s.exponents[0], 0);  // the formula says 2^-10, which would make 1e6 larger
}

TEST(Smoothing, TiesTheQueryHeadsOfAKeyValueHead) {
  std::vector<float> values = {1, 2, 3, 1, 5, 6, 7, 0};  // 4 query heads of width 2, 2 key/value heads
  tie_heads(values, 4, 2);
  EXPECT_THAT(values, ElementsAre(3, 2, 3, 2, 7, 6, 7, 6));
  std::vector<float> alone = {1, 2, 3, 4};
  tie_heads(alone, 2, 2);
  EXPECT_THAT(alone, ElementsAre(1, 2, 3, 4));
}

}  // namespace
}  // namespace oasr::calib
