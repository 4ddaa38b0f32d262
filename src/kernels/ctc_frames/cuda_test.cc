#include <gtest/gtest.h>

#include "kernels/ctc_frames/testing.h"
#include "kernels/cuda/testing.h"

namespace oasr::kernels {
namespace {

class CtcFramesOnGpu : public OnGpu {
 protected:
  std::vector<float> computed(const CtcCase& test) {
    auto x = upload(test.logits);
    auto out = room<float>(test.floats());
    test.with_arguments(x.data(), out.data(), [&](const CtcFramesArgs& args) { ctc_frames(context_, args); });
    return out.values();
  }
};

TEST_F(CtcFramesOnGpu, AreThoseOfTheReference) {
  for (const CtcCase& test : ctc_cases()) EXPECT_EQ(difference(test, computed(test), reference_of(test)), "");
}

// Enough rows that blocks of many are at work at a time, twice: a race would show now and then.
TEST_F(CtcFramesOnGpu, OfManyRowsAreThoseOfTheReferenceEveryTime) {
  CtcCase test = ctc_case(777, 10, 6);
  for (int i = 0; i < 5; ++i) test.logits.insert(test.logits.end(), test.logits.begin(), test.logits.end());
  test.pieces.clear();
  test.before.clear();
  for (std::int64_t left = static_cast<std::int64_t>(test.logits.size()) / test.stride(); left > 0; left -= test.pieces.back()) {
    test.pieces.push_back(std::min<std::int64_t>(left, 100 + 13 * static_cast<std::int64_t>(test.pieces.size())));
    test.before.emplace_back();
  }
  const std::vector<float> want = reference_of(test);
  for (int i = 0; i < 20; ++i) ASSERT_EQ(difference(test, computed(test), want), "") << i;
}

// The rows of a second pass are pieces of their own, more than are passed at a time.
TEST_F(CtcFramesOnGpu, OfManyPiecesAreThoseOfTheReference) {
  CtcCase test = ctc_case(37, 1, 1);
  const std::vector<float> rows = test.logits;
  const auto stride = static_cast<std::size_t>(test.stride());
  constexpr std::size_t kPieces = 70'000;
  while (test.logits.size() < kPieces * stride) test.logits.insert(test.logits.end(), rows.begin(), rows.end());
  test.logits.resize(kPieces * stride);
  test.pieces.assign(kPieces, 1);
  test.before.clear();
  for (std::size_t i = 0; i < kPieces; ++i) test.before.push_back({static_cast<TokenId>(i % 37)});
  EXPECT_EQ(difference(test, computed(test), reference_of(test)), "");
}

}  // namespace
}  // namespace oasr::kernels
