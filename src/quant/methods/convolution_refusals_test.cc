// What the methods of convolutions do not take.
#include <gtest/gtest.h>

#include "quant/methods/testing.h"

namespace oasr::quant {
namespace {

constexpr std::int64_t kN = 32;
const MethodOptions kNative = {
    .scaled_mm = &kernels::scaled_mm_implementation(kernels::ScaledMMBackend::native)};

TEST(QuantMethods, ConvolutionsRefuseAScaleThatIsNone) {
  const QuantizedLayer layer{.scheme = "int8_w8a8_static", .smoothed = true};
  OwnedSlots made = made_slots(layer, {kN, 3, 16}, 3);
  made.set("smooth_inv", 15, 0.0f);
  const auto method = quant_method(layer.scheme).conv1d_from_slots(
      made.slots, {.c_out = kN, .c_in = 16, .stride = 1, .bias = kernels::random_floats(kN, 3)}, kNative);
  ASSERT_FALSE(method);
  EXPECT_NE(method.error().what.find("smooth_inv"), std::string::npos);
}

TEST(QuantMethods, ImageConvolutionsRefuseWhatIsNoScaleAndSumsThatAreTooLong) {
  const QuantizedLayer layer{.scheme = "int8_w8a8_static", .smoothed = true};
  const Conv2dShape shape{.c_out = kN, .c_in = 16, .vertical = {.taps = 3}, .horizontal = {.taps = 3}};
  for (const char* suffix : {"smooth_inv", "input_scale"}) {
    OwnedSlots made = made_slots(layer, {kN, 3, 3, 16}, 3);
    made.set(suffix, 0, 0.0f);
    const auto method = quant_method(layer.scheme).conv2d_from_slots(made.slots, shape, {}, kNative);
    ASSERT_FALSE(method);
    EXPECT_EQ(method.error().code, ErrorCode::bad_checkpoint);
    EXPECT_NE(method.error().what.find(suffix), std::string::npos);
  }
  const OwnedSlots made = made_slots(layer, {1, 3, 3, 16}, 3);
  const auto method = quant_method(layer.scheme)
                          .conv2d_from_slots(made.slots, {.c_out = 1, .c_in = 14'564, .vertical = {.taps = 3},
                                                          .horizontal = {.taps = 3}}, {}, kNative);
  ASSERT_FALSE(method);
  EXPECT_EQ(method.error().code, ErrorCode::unsupported);
}

}  // namespace
}  // namespace oasr::quant
