#include <gtest/gtest.h>

#include <limits>

#include "kernels/cuda/testing.h"
#include "kernels/rows/op.h"
#include "kernels/testing.h"

namespace oasr::kernels {
namespace {

// Runs every function of op.h on the GPU and on the host, and compares all memory, gaps included.
class RowsOnGpu : public OnGpu {
 protected:
  ExecContext host_{&pool_, detected_isa()};
};

std::vector<std::int32_t> some_numbers(std::int64_t count, std::int32_t below, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(count));
  for (std::int32_t& number : numbers)
    number = static_cast<std::int32_t>(engine() % static_cast<unsigned>(below));
  return numbers;
}

const std::int64_t kRowCounts[] = {1, 2, 7, 8, 9, 31, 32, 33, 64, 127, 128, 130, 513, 1500};
const std::int64_t kWidths[] = {1, 3, 31, 32, 33, 80, 256, 1000};

TEST_F(RowsOnGpu, EmbedLikeTheHost) {
  constexpr std::int32_t kVocabulary = 71, kPositions = 50;
  for (const DType storage : {DType::f32, DType::f16, DType::bf16}) {
    for (const std::int64_t d : kWidths) {
      PackedWeight table = pack_rows(random_floats(kVocabulary * d, 1), kVocabulary, d, storage), placed;
      placed = pack_rows(random_floats(kVocabulary * d, 1), kVocabulary, d, storage);
      placed.place(*gpu_);
      auto places = random_floats(kPositions * (d + 1), 2);
      auto places_there = upload(places);
      for (const std::int64_t count : {1, 16, 63, 64, 65, 200}) {
        const auto tokens = some_numbers(count, kVocabulary, 3),
                   positions = some_numbers(count, kPositions, 4);
        for (const bool with_positions : {true, false}) {
          std::vector<float> y(static_cast<std::size_t>(count * (d + 2)), 77.0f);
          auto there = upload(y);
          const auto args = [&](const PackedWeight& weight, const float* places_at, float* to) {
            return EmbedRowsArgs{.table = &weight,
                                 .tokens = tokens,
                                 .scale = with_positions ? 1.0f : 22.6f,
                                 .positions = with_positions ? positions : std::span<const std::int32_t>{},
                                 .position_table = {places_at, kPositions, d, d + 1},
                                 .y = {to, count, d, d + 2}};
          };
          embed_rows(host_, args(table, places.data(), y.data()));
          embed_rows(context_, args(placed, places_there.data(), there.data()));
          EXPECT_EQ(first_difference(there.values(), y), -1)
              << dtype_name(storage) << " d " << d << " tokens " << count << " positions " << with_positions;
        }
      }
    }
  }
}

TEST_F(RowsOnGpu, GatherLikeTheHost) {
  for (const std::int64_t d : kWidths) {
    constexpr std::int32_t kRows = 90;
    const auto x = random_floats(kRows * (d + 3), 1);
    auto x_there = upload(x);
    for (const std::int64_t count : kRowCounts) {
      auto rows = some_numbers(count, kRows, 5);
      for (std::size_t i = 0; i < rows.size(); i += 5) rows[i] = kZeroRow;
      std::vector<float> y(static_cast<std::size_t>(count * (d + 1)), 77.0f);
      auto there = upload(y);
      gather_rows(host_, {x.data(), kRows, d, d + 3}, rows, {y.data(), count, d, d + 1});
      gather_rows(context_, {x_there.data(), kRows, d, d + 3}, rows, {there.data(), count, d, d + 1});
      EXPECT_EQ(first_difference(there.values(), y), -1) << "d " << d << " rows " << count;
    }
  }
}

TEST_F(RowsOnGpu, ShiftAndScaleLikeTheHostAlsoInPlace) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const std::int64_t d : kWidths) {
    auto shift = random_floats(d, 1), scale = random_floats(d, 2);
    auto shift_there = upload(shift), scale_there = upload(scale);
    for (const std::int64_t m : kRowCounts) {
      for (unsigned form = 0; form < 4; ++form) {
        auto x = random_floats(m * (d + 3), 3);
        const float odd[] = {kInf, -kInf, std::nanf(""), 1e-45f, -0.0f, 3e38f};
        for (std::size_t i = 0; i < x.size(); i += 17) x[i] = odd[i % std::size(odd)];
        auto there = upload(x);
        const auto args = [&](float* at, const float* shift_at, const float* scale_at) {
          return ShiftScaleRowsArgs{.x = {at, m, d, d + 3},
                                    .shift = form & 1 ? shift_at : nullptr,
                                    .scale = form & 2 ? scale_at : nullptr,
                                    .factor = 16.1f,
                                    .y = {at, m, d, d + 3}};
        };
        shift_scale_rows(host_, args(x.data(), shift.data(), scale.data()));
        shift_scale_rows(context_, args(there.data(), shift_there.data(), scale_there.data()));
        EXPECT_EQ(first_difference(there.values(), x), -1) << "m " << m << " d " << d << " form " << form;
      }
    }
  }
}

TEST_F(RowsOnGpu, ComeFromChannelsAndGoBackLikeOnTheHost) {
  for (const std::int64_t d : {1, 31, 32, 33, 80, 128}) {
    for (const std::int64_t m : {1, 31, 33, 130, 1500, 3000}) {
      const auto x = random_floats(m * d, 1);
      for (const std::int64_t gap : {0, 5}) {
        std::vector<float> y(static_cast<std::size_t>(m * (d + gap)), 77.0f), out(x.size()), back(x.size());
        auto there = upload(y);
        const Matrix here{y.data(), m, d, d + gap}, on_gpu{there.data(), m, d, d + gap};
        transpose_in(host_, x, here);
        transpose_in(context_, x, on_gpu);
        EXPECT_EQ(first_difference(there.values(), y), -1) << "m " << m << " d " << d;
        to_host(host_, here, out);
        to_host(context_, on_gpu, back);
        EXPECT_EQ(first_difference(back, out), -1) << "m " << m << " d " << d;
      }
    }
  }
}

TEST_F(RowsOnGpu, NameTheLowestThatIsNotFinite) {
  gpu_->at_layer("the rows");
  for (const std::int64_t d : {1, 33, 4096, 4097, 10000}) {
    const std::int64_t m = 130;
    auto x = random_floats(m * (d + 1), 1);
    x[static_cast<std::size_t>(3 * (d + 1) + d)] = std::nanf("");  // between rows
    const auto reported = [&] {
      auto there = upload(x);
      EXPECT_FALSE(first_not_finite(context_, {there.data(), m, d, d + 1}));
      return reported_row();
    };
    EXPECT_EQ(reported(), -1) << d;
    x[static_cast<std::size_t>(100 * (d + 1) + d - 1)] = -std::numeric_limits<float>::infinity();
    x[static_cast<std::size_t>(110 * (d + 1))] = std::nanf("");
    EXPECT_EQ(reported(), 100) << d;
  }
}

}  // namespace
}  // namespace oasr::kernels
