#include <gtest/gtest.h>

#include <limits>

#include "kernels/rows/op.h"
#include "kernels/testing.h"

namespace oasr::kernels {
namespace {

class Rows : public ::testing::Test {
 protected:
  ThreadPool pool_{2};
  ExecContext context_{&pool_, detected_isa()};
};

Matrix matrix(std::vector<float>& values, std::int64_t rows, std::int64_t columns, std::int64_t stride) {
  values.assign(static_cast<std::size_t>(rows * stride), 77.0f);
  return {values.data(), rows, columns, stride};
}

TEST_F(Rows, EmbedTokensTimesTheScalePlusPositions) {
  const std::vector<float> rows = {1, 2, 3, 4, 5, 6}, places = {10, 20, 30, 40, -1, 50, 60, -1};
  const std::int32_t tokens[] = {2, 0}, positions[] = {1, 0};
  for (const DType storage : {DType::f32, DType::f16, DType::bf16}) {
    const PackedWeight table = pack_rows(rows, 3, 2, storage);
    std::vector<float> y;
    embed_rows(context_, {.table = &table,
                          .tokens = tokens,
                          .scale = 3.0f,
                          .positions = positions,
                          .position_table = {places.data() + 2, 2, 2, 3},
                          .y = matrix(y, 2, 2, 3)});
    EXPECT_EQ(y, (std::vector<float>{15 + 50, 18 + 60, 77, 3 + 30, 6 + 40, 77}));
    embed_rows(
        context_,
        {.table = &table, .tokens = tokens, .positions = {}, .position_table = {}, .y = matrix(y, 2, 2, 2)});
    EXPECT_EQ(y, (std::vector<float>{5, 6, 1, 2}));
  }
}

TEST_F(Rows, EmbeddingRoundsTheProductBeforeItAddsThePosition) {
  const std::vector<float> row = {0x1.000002p0f}, place = {-0x1.000004p0f};
  const PackedWeight table = pack_rows(row, 1, 1, DType::f32);
  const std::int32_t zero[] = {0};
  std::vector<float> y;
  embed_rows(context_, {.table = &table,
                        .tokens = zero,
                        .scale = 0x1.000002p0f,
                        .positions = zero,
                        .position_table = {place.data(), 1, 1, 1},
                        .y = matrix(y, 1, 1, 1)});
  EXPECT_EQ(y[0], 0.0f);  // a fused multiply-add would give 2⁻⁴⁶
}

TEST_F(Rows, RefuseTokensAndRowsThatAreNotThere) {
  const std::vector<float> values = {1, 2, 3, 4};
  const PackedWeight table = pack_rows(values, 2, 2, DType::f32);
  std::vector<float> y;
  for (const std::int32_t odd : {-1, 2}) {
    EXPECT_THROW(embed_rows(context_, {.table = &table,
                                       .tokens = {&odd, 1},
                                       .positions = {},
                                       .position_table = {},
                                       .y = matrix(y, 1, 2, 2)}),
                 InternalError);
  }
  for (const std::int32_t odd : {-2, 2}) {
    EXPECT_THROW(gather_rows(context_, {values.data(), 2, 2, 2}, {&odd, 1}, matrix(y, 1, 2, 2)),
                 InternalError);
  }
}

TEST_F(Rows, AreGatheredInAnyOrderAndAsZeros) {
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  const std::int32_t rows[] = {2, kZeroRow, 0, 2};
  std::vector<float> y;
  gather_rows(context_, {x.data(), 3, 1, 2}, rows, matrix(y, 4, 1, 2));
  EXPECT_EQ(y, (std::vector<float>{5, 77, 0, 77, 1, 77, 5, 77}));
}

TEST_F(Rows, AreShiftedThenScaled) {
  const std::vector<float> x = {1, 2, 3, 4}, shift = {10, -2}, scale = {2, 3};
  const ConstMatrix from{x.data(), 2, 2, 2};
  std::vector<float> y;
  shift_scale_rows(context_,
                   {.x = from, .shift = shift.data(), .scale = scale.data(), .y = matrix(y, 2, 2, 2)});
  EXPECT_EQ(y, (std::vector<float>{22, 0, 26, 6}));
  shift_scale_rows(context_, {.x = from, .factor = 5.0f, .y = matrix(y, 2, 2, 2)});
  EXPECT_EQ(y, (std::vector<float>{5, 10, 15, 20}));
  const Matrix in_place{y.data(), 2, 2, 2};
  shift_scale_rows(context_, {.x = in_place, .shift = shift.data(), .y = in_place});
  EXPECT_EQ(y, (std::vector<float>{15, 8, 25, 18}));
}

TEST_F(Rows, ComeFromChannelsOnTheHostAndGoBack) {
  for (const std::int64_t frames : {1, 31, 32, 33, 100}) {
    const std::int64_t channels = 5;
    const auto x = random_floats(frames * channels, 3);
    std::vector<float> y, out(x.size());
    const Matrix to = matrix(y, frames, channels, channels + 2);
    transpose_in(context_, x, to);
    for (std::int64_t m = 0; m < frames; ++m) {
      for (std::int64_t d = 0; d < channels; ++d) {
        EXPECT_EQ(to.row(m)[d], x[static_cast<std::size_t>(d * frames + m)]);
      }
      EXPECT_EQ(to.row(m)[channels], 77.0f);
    }
    to_host(context_, to, out);
    for (std::int64_t m = 0; m < frames; ++m) {
      EXPECT_TRUE(std::equal(to.row(m), to.row(m) + channels, out.begin() + m * channels));
    }
    const auto before = out;
    to_host(context_, {out.data(), frames, channels, channels}, out);  // the same memory
    EXPECT_EQ(out, before);
  }
}

TEST_F(Rows, NameTheLowestThatIsNotFinite) {
  constexpr std::int64_t kRows = 1000, kD = 70;
  auto x = random_floats(kRows * kD, 1, 1e38f);
  for (float& value : x) value = std::isfinite(value) ? value : 1.0f;
  const ConstMatrix rows{x.data(), kRows, kD - 1, kD};
  EXPECT_FALSE(first_not_finite(context_, rows));
  x[900 * kD] = std::numeric_limits<float>::infinity();
  x[3 * kD + kD - 1] = std::nanf("");  // between rows
  EXPECT_EQ(first_not_finite(context_, rows).row, 900);
  x[777 * kD + kD - 2] = -std::nanf("");
  EXPECT_EQ(first_not_finite(context_, rows).row, 777);
}

}  // namespace
}  // namespace oasr::kernels
