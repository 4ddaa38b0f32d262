// What the methods of convolutions do not take.
#include <gtest/gtest.h>

#include <algorithm>

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

// Layers give the error their path (layers/linear.cc, conv1d.cc, conv2d.cc).
TEST(QuantMethods, RefuseWhatTheNamedBackendDoesNotMultiply) {
  const MethodOptions cublaslt{.scaled_mm = &kernels::scaled_mm_implementation(kernels::ScaledMMBackend::cublaslt)};
  const QuantizedLayer fixed{.scheme = "int8_w8a8_static", .smoothed = true}, dynamic{.scheme = "int8_w8a8"};
  const QuantMethod& method = quant_method(fixed.scheme);
  struct Row {
    std::int64_t n, k;
    bool taken;
  };
  constexpr Row kRows[] = {{32, 16, true}, {32, 24, false}, {36, 16, false}};
  for (const MethodOptions* options : {&kNative, &cublaslt}) {
    for (const Row& row : kRows) {
      const auto expect = [&](const auto& made, const char* which) {
        ASSERT_EQ(made.has_value(), row.taken || options == &kNative) << which << " " << row.n << " x " << row.k;
        if (!made) {
          EXPECT_EQ(made.error().code, ErrorCode::unsupported) << which;
        }
      };
      const auto zeros = [](std::int64_t, std::span<float> out) { std::ranges::fill(out, 0.0f); };
      expect(quant_method(dynamic.scheme).from_floats({.n = row.n, .k = row.k, .rows = zeros}, *options), "floats");
      const OwnedSlots linear = made_slots(dynamic, {row.n, row.k}, 3);
      expect(method.from_slots(dynamic, linear.slots, {}, kernels::Activation::none, *options), "slots");
      const OwnedSlots line = made_slots(fixed, {row.n, 3, row.k}, 3);
      expect(method.conv1d_from_slots(line.slots, {.c_out = row.n, .c_in = row.k, .stride = 1, .bias = {}}, *options),
             "conv1d");
      const OwnedSlots image = made_slots(fixed, {row.n, 3, 3, row.k}, 3);
      const Conv2dShape shape{.c_out = row.n, .c_in = row.k, .vertical = {.taps = 3}, .horizontal = {.taps = 3}};
      expect(method.conv2d_from_slots(image.slots, shape, {}, *options), "conv2d");
    }
  }
}

}  // namespace
}  // namespace oasr::quant
