#include "calib/folds.h"

#include <gmock/gmock.h>

#include <cstring>

#include "quant/methods/tensor_sources.h"
#include "tensor/dtype.h"

namespace oasr::calib {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> values_of(const TensorSource& tensor) {
  FloatRows rows(tensor);
  std::vector<float> all(static_cast<std::size_t>(rows.rows() * rows.columns()));
  for (std::int64_t row = 0; row < rows.rows(); ++row) {
    rows.read(row, std::span(all).subspan(static_cast<std::size_t>(row * rows.columns()),
                                          static_cast<std::size_t>(rows.columns())));
  }
  return all;
}

TEST(Folds, MultiplyRowsColumnsAndBias) {
  const std::vector<float> weight = {1, 2, 3, 4, 5, 6}, bias = {10, 20};
  const Folds folds = {{"fc", {.rows = {1, -1}, .columns = {0, 2, -1}}}};
  const auto tensors = folded(
      {quant::float_source("fc.weight", {2, 3}, weight), quant::float_source("fc.bias", {2}, bias)}, folds);
  EXPECT_THAT(values_of(tensors[0]), ElementsAre(0.5, 4, 0.75, 8, 40, 6));
  EXPECT_THAT(values_of(tensors[1]), ElementsAre(5, 40));
}

// 0.1 · 3 · 2 once: in float32, 0.1f · 3 would be rounded before.
TEST(Folds, RoundOnceWhereFactorsOfRowsAreNoPowersOfTwo) {
  const std::vector<float> weight = {3, 1, 3, 1}, bias = {10, 20};
  const Folds folds = {{"fc", {.rows = {0, 1}, .columns = {1, 0}, .factors = {0.1, 0.1}}}};
  const auto tensors = folded(
      {quant::float_source("fc.weight", {2, 2}, weight), quant::float_source("fc.bias", {2}, bias)}, folds);
  EXPECT_THAT(values_of(tensors[0]), ElementsAre(static_cast<float>(0.1 * 6), static_cast<float>(0.1),
                                                 static_cast<float>(0.1 * 3), static_cast<float>(0.1 / 2)));
  EXPECT_THAT(values_of(tensors[1]), ElementsAre(1, 1));
}

TEST(Folds, OfANormReachGammaAndBeta) {
  const std::vector<float> gamma = {1, 3}, beta = {8, -2};
  const Folds folds = {{"norm", {.rows = {2, -1}, .columns = {}}}};
  const auto tensors = folded(
      {quant::float_source("norm.weight", {2}, gamma), quant::float_source("norm.bias", {2}, beta)}, folds);
  EXPECT_THAT(values_of(tensors[0]), ElementsAre(0.25, 6));
  EXPECT_THAT(values_of(tensors[1]), ElementsAre(2, -4));
}

TEST(Folds, LeaveOtherTensorsAlone) {
  const std::vector<float> values = {1, 2};
  const Folds folds = {{"fc", {.rows = {5, 5}, .columns = {}}}};
  const auto tensors = folded(
      {quant::float_source("fc2.weight", {2}, values), quant::float_source("fc.scale", {2}, values)}, folds);
  EXPECT_THAT(values_of(tensors[0]), ElementsAre(1, 2));
  EXPECT_THAT(values_of(tensors[1]), ElementsAre(1, 2));
}

// 2^-20 is subnormal in float16; 2^-30 would be zero there.
TEST(Folds, OfSixteenBitTensorsRoundNothing) {
  const std::uint16_t bits = to_half(0x1.004p-14f).bits;
  const TensorSource half{
      .name = "fc.weight",
      .format = StorageFormat::f16,
      .shape = {1, 1},
      .row = [bits](std::int64_t, std::span<std::byte> out) { std::memcpy(out.data(), &bits, 2); }};
  const Folds folds = {{"fc", {.rows = {16}, .columns = {}}}};
  const auto tensors = folded({half}, folds);
  EXPECT_THAT(values_of(tensors[0]), ElementsAre(0x1.004p-30f));
}

TEST(Folds, BeyondFloat16AreRefusedByName) {
  const std::vector<float> weight = {1, 3000};
  const Folds folds = {{"encoder.fc", {.rows = {}, .columns = {0, 5}}}};
  const auto tensors = folded({quant::float_source("encoder.fc.weight", {1, 2}, weight)}, folds);
  const auto checked = check_half_range(tensors, folds);
  ASSERT_FALSE(checked.has_value());
  EXPECT_THAT(checked.error().message(), HasSubstr("encoder.fc.weight"));
  EXPECT_TRUE(check_half_range(tensors, {}).has_value());  // of layers that are not folded nothing is said
}

}  // namespace
}  // namespace oasr::calib
