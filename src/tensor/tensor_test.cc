#include "tensor/tensor.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace oasr {
namespace {

TEST(Half, EveryBitPatternSurvivesTheRoundTrip) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Half half{static_cast<std::uint16_t>(bits)};
    const float value = to_float(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(to_float(to_half(value)))) << bits;
    } else {
      EXPECT_EQ(to_half(value).bits, bits);
    }
  }
}

TEST(Half, RoundsToNearestEven) {
  for (std::uint32_t bits = 0; bits < 0x7BFF; ++bits) {
    const float low = to_float(Half{static_cast<std::uint16_t>(bits)});
    const float high = to_float(Half{static_cast<std::uint16_t>(bits + 1)});
    const float middle = 0.5f * (low + high);  // exact: two extra bits
    EXPECT_EQ(to_half(middle).bits, bits + (bits & 1u));
    EXPECT_EQ(to_half(std::nextafter(middle, 0.0f)).bits, bits);
    EXPECT_EQ(to_half(std::nextafter(middle, 1e9f)).bits, bits + 1);
  }
}

TEST(Half, OverflowsToInfinityAt65520) {
  EXPECT_EQ(to_half(65519.996f).bits, 0x7BFF);
  EXPECT_EQ(to_half(65520.0f).bits, 0x7C00);
  EXPECT_EQ(to_half(-INFINITY).bits, 0xFC00);
}

TEST(BFloat16, RoundsToNearestEven) {
  EXPECT_EQ(to_bfloat16(std::bit_cast<float>(0x3F808000u)).bits, 0x3F80);
  EXPECT_EQ(to_bfloat16(std::bit_cast<float>(0x3F818000u)).bits, 0x3F82);
  EXPECT_EQ(to_bfloat16(std::bit_cast<float>(0x3F808001u)).bits, 0x3F81);
  EXPECT_TRUE(std::isnan(to_float(to_bfloat16(NAN))));
}

TEST(Shape, RefusesOverflowNegativeExtentsAndHighRank) {
  const std::int64_t huge[] = {std::int64_t{1} << 40, std::int64_t{1} << 40};
  EXPECT_FALSE(Shape::checked(huge));
  const std::int64_t negative[] = {2, -1};
  EXPECT_FALSE(Shape::checked(negative));
  const std::int64_t deep[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_FALSE(Shape::checked(deep));
}

TEST(Tensor, RefusesAViewOfAnotherElementType) {
  Tensor tensor = Tensor::zeros(DType::f32, {2, 3});
  EXPECT_EQ(tensor.as<float>().size(), 6u);
  EXPECT_THROW(tensor.as<std::int32_t>(), InternalError);
}

}  // namespace
}  // namespace oasr
