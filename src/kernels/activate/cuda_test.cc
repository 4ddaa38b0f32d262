#include <gtest/gtest.h>

#include <limits>

#include "kernels/activate/op.h"
#include "kernels/cuda/testing.h"
#include "kernels/testing.h"

namespace oasr::kernels {
namespace {

using ActivateOnGpu = OnGpu;

// Values of every size, the odd ones among them.
std::vector<float> some_floats(std::int64_t count, unsigned seed) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  auto values = random_floats(count, seed, 20.0f);
  const float odd[] = {kInf,    -kInf, std::nanf(""), 0.0f,  -0.0f, 1e-45f,
                       -1e-40f, 3e38f, -3e38f,        88.0f, -88.0f};
  for (std::size_t i = 0, at = seed % 7; at < values.size(); ++i, at += 11)
    values[at] = odd[i % std::size(odd)];
  return values;
}

const std::int64_t kRowCounts[] = {1, 2, 7, 8, 9, 31, 33, 130, 1500};
const std::int64_t kWidths[] = {1, 3, 31, 32, 33, 70, 256, 2048};

TEST_F(ActivateOnGpu, EqualsTheReferenceForEveryShapeAndFunction) {
  for (const std::int64_t m : kRowCounts) {
    for (const std::int64_t d : kWidths) {
      if (m * d > 500'000) continue;
      for (unsigned number = 0; number < 5; ++number) {
        auto x = some_floats(m * (d + 2), static_cast<unsigned>(m + d));
        auto there = upload(x);
        const auto args = [&](float* at) {
          return ActivateRowsArgs{
              .x = at, .ldx = d + 2, .m = m, .d = d, .activation = some_activation(number)};
        };
        activate_rows(context_, args(there.data()));
        activate_rows_reference(args(x.data()));
        EXPECT_EQ(first_difference(there.values(), x), -1)
            << "m " << m << " d " << d << " function " << number;
      }
    }
  }
}

TEST_F(ActivateOnGpu, GluEqualsTheReferenceAlsoInPlace) {
  for (const std::int64_t m : kRowCounts) {
    for (const std::int64_t d : kWidths) {
      if (m * d > 500'000) continue;
      auto x = some_floats(m * (2 * d + 3), static_cast<unsigned>(m + d));
      std::vector<float> y(static_cast<std::size_t>(m * (d + 1)), 77.0f);
      auto x_there = upload(x), y_there = upload(y);
      const auto args = [&](const float* from, float* to, std::int64_t ldy) {
        return GluArgs{.x = from, .ldx = 2 * d + 3, .m = m, .d = d, .y = to, .ldy = ldy};
      };
      glu(context_, args(x_there.data(), y_there.data(), d + 1));
      glu_reference(args(x.data(), y.data(), d + 1));
      EXPECT_EQ(first_difference(y_there.values(), y), -1) << "m " << m << " d " << d;
      glu(context_, args(x_there.data(), x_there.data(), 2 * d + 3));
      glu_reference(args(x.data(), x.data(), 2 * d + 3));
      EXPECT_EQ(first_difference(x_there.values(), x), -1) << "in place, m " << m << " d " << d;
    }
  }
}

TEST_F(ActivateOnGpu, GluHasTheRowsOfItsHeadFirst) {
  for (const std::int64_t m : {1, 9, 130}) {
    for (const std::int64_t d : {1, 33, 256}) {
      for (const std::int64_t ld_head : {std::int64_t{0}, d + 2}) {
        constexpr std::int64_t kHead = 14;
        const auto x = some_floats(m * 2 * d, 4), head = some_floats(kHead * (d + 2), 5);
        std::vector<float> y(static_cast<std::size_t>((kHead + m) * (d + 1)), 77.0f);
        auto x_there = upload(x), head_there = upload(head), y_there = upload(y);
        GluArgs args{.x = x.data(), .ldx = 2 * d, .m = m, .d = d, .y = y.data(), .ldy = d + 1, .head = head.data(),
                     .head_rows = kHead, .ld_head = ld_head};
        glu_reference(args);
        args.x = x_there.data();
        args.y = y_there.data();
        args.head = head_there.data();
        glu(context_, args);
        EXPECT_EQ(first_difference(y_there.values(), y), -1) << "m " << m << " d " << d << " ld " << ld_head;
      }
    }
  }
}

// The polynomials themselves: floats spread over all bit patterns.
TEST_F(ActivateOnGpu, FunctionsEqualTheHostsOnFloatsOfEverySize) {
  constexpr std::int64_t kCount = 1 << 20;
  std::vector<float> x(kCount);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = std::bit_cast<float>(static_cast<std::uint32_t>(i * 4096 + i % 4093));
  for (unsigned number = 0; number < 4; ++number) {
    auto expected = x;
    auto there = upload(x);
    const auto args = [&](float* at) {
      return ActivateRowsArgs{
          .x = at, .ldx = 1024, .m = kCount / 1024, .d = 1024, .activation = some_activation(number)};
    };
    activate_rows(context_, args(there.data()));
    activate_rows_reference(args(expected.data()));
    const std::int64_t at = first_difference(there.values(), expected);
    EXPECT_EQ(at, -1) << "function " << number << " of " << (at < 0 ? 0.0f : x[static_cast<std::size_t>(at)]);
  }
}

}  // namespace
}  // namespace oasr::kernels
