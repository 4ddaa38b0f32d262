#include <gtest/gtest.h>

#include "decode/scores.h"
#include "kernels/ctc_frames/testing.h"

namespace oasr::kernels {
namespace {

std::vector<float> computed(const CtcCase& test, int threads) {
  ThreadPool pool(threads);
  ExecContext context{.pool = &pool, .isa = detected_isa()};
  std::vector<float> x = test.logits, out(static_cast<std::size_t>(test.floats()), std::nanf(""));
  test.with_arguments(x.data(), out.data(), [&](const CtcFramesArgs& args) { ctc_frames(context, args); });
  return out;
}

TEST(CtcFrames, AreThoseOfTheReferenceOnAnyNumberOfThreads) {
  for (const CtcCase& test : ctc_cases()) {
    const std::vector<float> want = reference_of(test);
    for (const int threads : {1, 3}) EXPECT_EQ(difference(test, computed(test, threads), want), "");
  }
}

// The reference has its own sums: what it says is what searches did with whole rows.
TEST(CtcFrames, AreTheGreatestOfTheWholeRowsLogProbabilities) {
  for (const CtcCase& test : ctc_cases()) {
    std::vector<float> out = reference_of(test);
    const CtcFrameRows got(out.data(), test.rows(), test.width);
    std::int64_t reported = 0;
    for (std::int64_t m = 0; m < test.rows(); ++m) {
      const auto first = test.logits.begin() + m * test.stride();
      std::vector<float> row(first, first + test.vocabulary);
      const float norm = decode::log_sum_exp(row);
      for (float& x : row) x -= norm;
      if (std::isnan(got.norms[m])) {
        EXPECT_FALSE(std::ranges::all_of(row, [](float x) { return std::isfinite(x); })) << m << test.name();
        ++reported;
        continue;
      }
      EXPECT_TRUE(same_bits(got.norms[m], norm)) << m << test.name();
      std::vector<decode::ScoredToken> best;
      decode::top_k(row, test.width, best);
      ASSERT_EQ(best.size(), static_cast<std::size_t>(test.width));
      for (std::size_t k = 0; k < best.size(); ++k) {
        const decode::ScoredToken& token = got.likeliest[m * test.width + static_cast<std::int64_t>(k)];
        EXPECT_EQ(token.token, best[k].token) << m << test.name();
        EXPECT_TRUE(same_bits(token.logit, best[k].logit)) << m << test.name();
      }
    }
    EXPECT_EQ(reported, test.vocabulary == 1 ? 4 : 5) << test.name();
  }
}

TEST(CtcFrames, OfPiecesAreThoseOfTheWhole) {
  CtcCase whole = ctc_case(70, 10, 4);
  whole.pieces = {whole.rows()};
  whole.before = {{}};
  std::vector<float> out = computed(whole, 1);
  const CtcFrameRows rows(out.data(), whole.rows(), whole.width);
  CtcCase pieces = whole;
  pieces.pieces.clear();
  pieces.before.clear();
  for (std::int64_t m = 0; m < whole.rows();) {
    const std::int64_t count = std::min(whole.rows() - m, 1 + m % 5);
    auto& before = pieces.before.emplace_back();
    for (int k = 0; m > 0 && k < whole.width; ++k) before.push_back(rows.likeliest[(m - 1) * whole.width + k].token);
    pieces.pieces.push_back(count);
    m += count;
  }
  EXPECT_EQ(difference(whole, computed(pieces, 2), out), "");
}

}  // namespace
}  // namespace oasr::kernels
