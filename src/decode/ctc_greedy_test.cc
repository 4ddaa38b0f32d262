#include "decode/ctc_greedy.h"

#include <gtest/gtest.h>

#include "decode/ctc_testing.h"

namespace oasr::decode {
namespace {

std::vector<TokenId> ids(const CtcBestPath& path) {
  std::vector<TokenId> all;
  for (const CtcToken& token : path.tokens) all.push_back(token.id);
  return all;
}

TEST(CtcGreedy, MergesRepetitionsAndSeparatesThemByBlanks) {
  const CtcRows rows =
      rows_of({{.1, .8, .1}, {.1, .9, 0}, {.6, .2, .2}, {.2, .7, .1}, {.1, .1, .8}});
  CtcGreedy search;
  search.accept(rows.reduced());
  EXPECT_EQ(ids(search.result()), (std::vector<TokenId>{1, 1, 2}));
  EXPECT_EQ(search.result().tokens[0].frame, 0);
  EXPECT_EQ(search.result().tokens[1].frame, 3);
  EXPECT_EQ(search.result().tokens[2].frame, 4);
  EXPECT_NEAR(search.result().score, std::log(.8 * .9 * .6 * .7 * .8), 1e-6);
}

// Float32 logs of the probabilities, rounded once: relative error of the probability 2^-24 |log|.
TEST(CtcGreedy, ConfidenceIsTheGreatestPosteriorUpToOneFrameAfterTheRun) {
  const CtcRows rows =
      rows_of({{.2, .5, .3}, {.1, .6, .3}, {.5, .4, .1}, {.7, .2, .1}, {.1, .1, .8}});
  CtcGreedy search;
  search.accept(rows.reduced());
  ASSERT_EQ(search.result().tokens.size(), 2u);
  EXPECT_NEAR(search.result().tokens[0].confidence, .6, 1e-7);
  const CtcRows late = rows_of({{.45, .55}, {.2, .8}, {.51, .49}});
  search.reset();
  search.accept(late.reduced());
  EXPECT_NEAR(search.result().tokens[0].confidence, .8, 1e-7);
  // The frame after the run: another token is likeliest, this one still rises.
  const CtcRows after = rows_of({{.3, .36, .34}, {.0, .45, .55}});
  search.reset();
  search.accept(after.reduced());
  EXPECT_NEAR(search.result().tokens[0].confidence, .45, 1e-7);
  EXPECT_NEAR(search.result().tokens[1].confidence, .55, 1e-7);
}

TEST(CtcGreedy, EqualPosteriorsGoToTheLowerId) {
  const CtcRows rows = rows_of({{.2, .4, .4}, {.4, .2, .4}});
  CtcGreedy search;
  search.accept(rows.reduced());
  EXPECT_EQ(ids(search.result()), (std::vector<TokenId>{1}));
}

TEST(CtcGreedy, ResultDoesNotDependOnThePieces) {
  const CtcRows rows = random_rows(3, 200, 7, 2);
  CtcGreedy whole, single;
  whole.accept(rows.reduced());
  for (int t = 0; t < rows.frames(); ++t) single.accept(rows.reduced(t, t + 1));
  EXPECT_EQ(whole.result().tokens, single.result().tokens);
  EXPECT_EQ(whole.result().score, single.result().score);
  EXPECT_EQ(whole.trailing_frames(), single.trailing_frames());
  EXPECT_EQ(whole.frames(), 200);
}

TEST(CtcGreedy, CountsTheBlanksAtTheEnd) {
  CtcGreedy search;
  search.accept(rows_of({{.9, .1}, {.8, .2}}).reduced());
  EXPECT_EQ(search.trailing_frames(), 2);
  search.accept(rows_of({{.1, .9}, {.8, .2}, {.8, .2}, {.7, .3}}).reduced());
  EXPECT_EQ(search.trailing_frames(), 3);
}

}  // namespace
}  // namespace oasr::decode
