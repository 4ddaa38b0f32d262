// The numbers that round to nearest stores of a float weight.
#include "quant/methods/int8_linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace oasr::quant {
namespace {

constexpr std::int64_t kN = 24, kK = 48;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(QuantizeWeight, NamesTheRowThatIsNotFinite) {
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    const auto storage =
        quantize_weight(detected_isa(), {.n = kN, .k = kK, .rows = [&](std::int64_t row, std::span<float> out) {
                           std::ranges::fill(out, 1.0f);
                           if (row == 17) out[kK - 1] = bad;
                         }});
    ASSERT_FALSE(storage);
    EXPECT_EQ(storage.error().code, ErrorCode::bad_checkpoint);
    EXPECT_EQ(storage.error().what, "row 17 of the weight holds NaN or infinity");
  }
}

TEST(QuantizeWeight, KeepsAChannelOfZeros) {
  const auto storage = quantize_weight(detected_isa(), {.n = 2, .k = 16, .rows = [](std::int64_t row, std::span<float> out) {
                                          std::ranges::fill(out, row == 0 ? 0.0f : -3.0f);
                                        }}).value();
  EXPECT_EQ(storage.weight[0], 0);
  EXPECT_EQ(storage.weight[16], -127);
  EXPECT_GT(storage.weight_scale[0], 0);
}

}  // namespace
}  // namespace oasr::quant
